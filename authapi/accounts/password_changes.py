"""What ends with a password, whoever changed it: blocks, sessions, refresh tokens, and links that were mailed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from authapi.accounts.brute_force import lift_blocks
from authapi.login.new_browsers import forget_browsers
from authapi.login.remembered_browsers import forget_all_browsers
from authapi.login.sessions import end_sessions_of
from authapi.models import AccountTicket, Initiator, Session
from authapi.services.account_tickets import use_up, void
from authapi.tokens import ciba_requests, device_codes
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.mail.address_changes import void_address_changes
from identity.models import User

_kept: ContextVar[str] = ContextVar("kept_session", default="")


@contextmanager
def keeping(session: Session) -> Iterator[None]:
    """Let this session outlive a password that is changed within the block: the person has just typed the old one in it."""
    token = _kept.set(session.pk)
    try:
        yield
    finally:
        _kept.reset(token)


def end_what_it_began(user: User, *, is_first: bool, **_: Any) -> None:
    """Hear of a new password, inside its transaction.

    Whoever knew the old one is logged out everywhere. A first password lifts blocks, too: somebody may have tried to log in
    before there was an account.
    """
    lift_blocks(tenant_id=user.tenant_id, user=user)
    if is_first:
        return
    for purpose in (AccountTicket.Purpose.PASSWORD_RESET, AccountTicket.Purpose.UNBLOCK):
        use_up(user, purpose)
    void(user, AccountTicket.Purpose.ENROLLMENT)
    forget_all_browsers(user)
    # An attacker who knew the old password may have asked for another address.
    void_address_changes(user)
    end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.PASSWORD_CHANGED, except_id=_kept.get() or None)
    revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
    # An attacker who logged in with the old password would be known in that browser, and get in with the next one unseen.
    forget_browsers(user)
    device_codes.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
    ciba_requests.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
