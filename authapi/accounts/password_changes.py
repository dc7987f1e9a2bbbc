"""Ends blocks, sessions, refresh tokens and mailed links that depend on an old password, after every kind of password change."""

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
    """Keep this session if the password changes inside the `with` block: the user has just entered the old password in this session."""
    token = _kept.set(session.pk)
    try:
        yield
    finally:
        _kept.reset(token)


def end_what_it_began(user: User, *, is_first: bool, **_: Any) -> None:
    """Revoke access after a password change. Signal receiver, runs in the same transaction.

    An attacker may know the old password. So all sessions and refresh tokens of the user end, except a session in `keeping`. If the user
    had no password before, no access ends. But blocks are lifted in this case, too: failed logins are also counted for names without an
    account or a password.
    """
    lift_blocks(tenant_id=user.tenant_id, user=user)
    if is_first:
        return
    for purpose in (AccountTicket.Purpose.PASSWORD_RESET, AccountTicket.Purpose.UNBLOCK):
        use_up(user, purpose)
    void(user, AccountTicket.Purpose.ENROLLMENT)
    forget_all_browsers(user)
    # An attacker with the old password may have requested a change of the email address.
    void_address_changes(user)
    end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=Initiator.PASSWORD_CHANGED, except_id=_kept.get() or None)
    revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
    # If the browser of an attacker stayed known, a later login in this browser would cause no warning mail.
    forget_browsers(user)
    device_codes.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
    ciba_requests.take_back_approvals(tenant_id=user.tenant_id, user_id=user.pk)
