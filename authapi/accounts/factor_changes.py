"""What ends when a second factor of a user is taken away by staff or by the management interface."""

from __future__ import annotations

from typing import Any

from authapi.login.remembered_browsers import forget_all_browsers
from authapi.login.sessions import end_sessions_of
from authapi.models import AccountTicket, FactorChallenge, Initiator
from authapi.services import sign_in_log
from authapi.services.account_tickets import void
from identity.models import EnrolledFactor, User

# Codes of the log (contract, logs): a factor was enrolled, a factor was removed.
_ENROLLED, _REMOVED = "gd_enrollment_complete", "gd_unenroll"


def end_what_rested_on_factors(user: User, *, removed: frozenset[str], is_by_user: bool, **_: Any) -> None:
    """Hear of changed factors, inside that transaction, and write a line of the log.

    What others remove may be in the hands of an attacker: browsers that rest on it are asked again, open challenges are worth nothing,
    and with a telephone end the sessions. A user who removes a factor has just proven who they are, and stays logged in.
    """
    if removed:
        # A link that adds to a factor asks for its proof; without the factor, it would ask for nothing.
        void(user, AccountTicket.Purpose.ENROLLMENT)
    if removed and is_by_user:
        # The page of the user writes the line, with the address of the browser.
        return
    sign_in_log.note(
        tenant_id=user.tenant_id,
        type=_REMOVED if removed else _ENROLLED,
        is_success=True,
        user=user,
        details={"factors": sorted(removed)} if removed else {},
    )
    if not removed:
        return
    forget_all_browsers(user)
    FactorChallenge.objects.of(user.tenant_id).filter(user=user).delete()
    if EnrolledFactor.Kind.PHONE in removed:
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.MFA_PHONE_UNENROLLED)
