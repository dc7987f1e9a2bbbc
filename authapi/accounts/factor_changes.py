"""Ends the logins and challenges that depend on a second factor when staff or the management interface removes the factor."""

from __future__ import annotations

from typing import Any

from authapi.login.remembered_browsers import forget_all_browsers
from authapi.login.sessions import end_sessions_of
from authapi.models import AccountTicket, FactorChallenge, Initiator
from authapi.services import sign_in_log
from authapi.services.account_tickets import void
from identity.models import EnrolledFactor, User

# Codes of the sign-in log (contract, logs): factor enrolled, factor removed.
_ENROLLED, _REMOVED = "gd_enrollment_complete", "gd_unenroll"


def end_what_rested_on_factors(user: User, *, removed: frozenset[str], is_by_user: bool, **_: Any) -> None:
    """Revoke access that depends on removed factors, and write a line to the sign-in log. Signal receiver, runs in the same transaction.

    If staff or a client removes a factor, the reason may be that an attacker possesses the factor. Therefore all browsers must prove a
    factor again, and open challenges become invalid. Removing a phone also ends the sessions. If users remove a factor themselves, they
    have just proved their identity, so they stay logged in.
    """
    if removed:
        # Invalidate setup links. A setup link that adds a factor requires the proof of an existing factor. After the removal of the last
        # factor, the link would require no proof.
        void(user, AccountTicket.Purpose.ENROLLMENT)
    if removed and is_by_user:
        # If the user removes the factor, the account page writes the line, because the account page has the IP address of the browser.
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
