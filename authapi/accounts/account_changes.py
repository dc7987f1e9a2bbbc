"""What ends when an administrator blocks a user, when the user gets another address, or when a linked identity goes."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from authapi.login.remembered_browsers import forget_all_browsers
from authapi.login.sessions import end_session, end_sessions_of
from authapi.models import AuthorizationCode, Initiator, RefreshToken, Session
from authapi.tokens import ciba_requests, device_codes
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.models import LinkedIdentity, User

# The connection whose users prove an address and nothing else. Providers elsewhere identify a user by a subject.
_BY_ADDRESS = "email"


def end_what_rested_on_it(user: User, *, changed: frozenset[str], **_: object) -> None:
    """Hear of a changed account, inside its transaction.

    Unblocking ends everything once more: a login that was under way during the block may have begun a session after it.
    Another address ends sessions alone: applications keep what the user granted them for the time without one.
    """
    if "blocked" in changed:
        if not user.blocked:
            # During the block an exchange says that the user is blocked; afterwards the code is worth nothing.
            codes = AuthorizationCode.objects.of(user.tenant_id).filter(user=user, used_at__isnull=True)
            codes.update(used_at=timezone.now())
        forget_all_browsers(user)
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.ACCOUNT_DEACTIVATED)
        revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
        device_codes.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
        ciba_requests.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
    elif keeps_address(user):
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.EMAIL_IDENTIFIER_CHANGED)


def keeps_address(user: User) -> bool:
    """Tell whether the address of a user is kept here, and not by a provider elsewhere."""
    return user.connection.is_database or user.connection.strategy == _BY_ADDRESS


def end_with_identity(sender: type[LinkedIdentity], instance: LinkedIdentity, **_: Any) -> None:
    """Hear that a linked identity has been taken off its user, inside that transaction: what was begun through it ends."""
    begun = Session.objects.of(instance.tenant_id).filter(user_id=instance.user_id, connection_id=instance.connection_id)
    for session in begun.select_related("user").order_by("pk"):
        offline = RefreshToken.objects.of(instance.tenant_id).filter(sid=session.pk, revoked__isnull=True)
        end_session(session, reason=Initiator.SESSION_REVOKED)
        offline.update(revoked=timezone.now(), updated=timezone.now())
