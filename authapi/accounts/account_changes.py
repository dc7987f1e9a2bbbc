"""What ends when an administrator blocks a user, or when the user gets another address."""

from __future__ import annotations

from django.utils import timezone

from authapi.login.sessions import end_sessions_of
from authapi.models import AuthorizationCode, Initiator
from authapi.services.refresh_tokens import revoke_refresh_tokens
from identity.models import User

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
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.ACCOUNT_DEACTIVATED)
        revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
    elif user.connection.is_database or user.connection.strategy == _BY_ADDRESS:
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.EMAIL_IDENTIFIER_CHANGED)
