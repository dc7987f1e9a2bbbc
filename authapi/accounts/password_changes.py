"""What ends with a password, whoever changed it: blocks, sessions, refresh tokens, and links that were mailed."""

from __future__ import annotations

from typing import Any

from authapi.accounts.brute_force import lift_blocks
from authapi.login.sessions import end_sessions_of
from authapi.models import AccountTicket, Initiator
from authapi.services.account_tickets import use_up
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.models import User


def end_what_it_began(user: User, *, is_first: bool, **_: Any) -> None:
    """Hear of a new password, inside its transaction.

    Whoever knew the old one is logged out everywhere. A first password lifts blocks, too: somebody may have tried to log in
    before there was an account.
    """
    lift_blocks(tenant_id=user.tenant_id, user=user)
    if is_first:
        return
    for purpose in AccountTicket.Purpose:
        use_up(user, purpose)
    end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.PASSWORD_CHANGED)
    revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
