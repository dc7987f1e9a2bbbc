"""Ends sessions and tokens in three cases: a user is blocked or unblocked, an email address changes, or an identity is unlinked."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from authapi.login.remembered_browsers import forget_all_browsers
from authapi.login.sessions import end_session, end_sessions_of
from authapi.models import AuthorizationCode, Initiator, RefreshToken, Session
from authapi.tokens import ciba_requests, device_codes
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.models import LinkedIdentity, User

# The strategy of connections whose users can log in only by email address. Users of external providers are identified by a subject.
_BY_ADDRESS = "email"


def end_what_rested_on_it(user: User, *, changed: frozenset[str], **_: object) -> None:
    """Revoke access after a block, an unblocking, or a change of the email address. Signal receiver, runs in the same transaction.

    Unblocking also ends sessions. The reason: a login may have been in progress when the user was blocked, and may have begun a session
    after the other sessions had ended. A change of the email address ends the sessions if this service manages the address. The change
    revokes no refresh tokens: applications with these tokens must keep their access while the user is not logged in.
    """
    if "blocked" in changed:
        if not user.blocked:
            # While the user is blocked, the exchange of an authorization code fails and reports the block. Mark the code as used, so that
            # the exchange also fails after the user is unblocked.
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
    """Tell whether this service manages the email address of a user. If not, an external provider manages it."""
    return user.connection.is_database or user.connection.strategy == _BY_ADDRESS


def end_with_identity(sender: type[LinkedIdentity], instance: LinkedIdentity, **_: Any) -> None:
    """End the sessions that began at the connection of an unlinked identity. Signal receiver, runs in the same transaction.

    Also revokes the refresh tokens that were issued in these sessions.
    """
    begun = Session.objects.of(instance.tenant_id).filter(user_id=instance.user_id, connection_id=instance.connection_id)
    for session in begun.select_related("user").order_by("pk"):
        offline = RefreshToken.objects.of(instance.tenant_id).filter(sid=session.pk, revoked__isnull=True)
        end_session(session, reason=Initiator.SESSION_REVOKED)
        offline.update(revoked=timezone.now(), updated=timezone.now())
