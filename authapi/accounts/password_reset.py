"""Handles mailed links that set a new password or lift a block. Opening a link changes nothing, because mail scanners also open links."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from authapi.accounts.account_mails import start_reset_mail
from authapi.accounts.brute_force import lift_blocks
from authapi.accounts.leaked_passwords import CHANGE, note_new_password
from authapi.accounts.user_lookup import LONGEST
from authapi.edge.addresses import customer_keys, customer_of
from authapi.edge.rate_figures import RESETS, RESETS_OF_ADDRESS
from authapi.edge.throttling import Rate
from authapi.models import AccountTicket, Client
from authapi.services import sign_in_log
from authapi.services.account_tickets import usable, use_up
from foundation.database.transactions import unit_of_work
from identity.models import Connection, User
from identity.passwords import Weakness
from identity.services.profile_rules import PasswordTooWeak, check_password, personal_data
from identity.services.users import locked_user, update_user

_REQUESTED, _CHANGED, _UNBLOCKED = "scpr", "scp", "ublkdu"


class TooManyRequests(Exception):
    """Too many requests for this account, or from this address. Try again later."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


def ask_for_reset(*, connection: Connection, identifier: str, client: Client | None, ip: str, user_agent: str, address: str) -> None:
    """Queue a mail with a link that sets a new password, if the user exists.

    The duration of the call does not reveal whether the user exists. The sign-in log gets a line in any case. If the identifier is empty or
    too long, no mail is sent. Raises `TooManyRequests` if one IP address requests too many mails for this account or for many accounts.
    """
    identifier = identifier.strip()
    _check_rates(connection, identifier, ip)
    sign_in_log.note(
        tenant_id=connection.tenant_id,
        type=_REQUESTED,
        is_success=True,
        user_name=identifier,
        client=client,
        connection=connection.name,
        ip=ip,
        user_agent=user_agent,
    )
    if not 0 < len(identifier) <= LONGEST:
        # A job stores the whole identifier: without a limit, each request would store up to 64 KiB.
        return
    start_reset_mail(connection=connection, identifier=identifier, client=client, ip=ip, address=address)


def _check_rates(connection: Connection, identifier: str, ip: str) -> None:
    tenant_id, keys = connection.tenant_id, customer_keys(ip, settings.TRUSTED_PROXIES)
    if not RESETS.takes(tenant_id, customer_of(keys) or ip, identifier.lower()):
        raise TooManyRequests(Rate.of_empty(RESETS))
    for key in keys:
        bucket = RESETS_OF_ADDRESS.times(key.factor)
        if not bucket.takes(tenant_id, key.name):
            raise TooManyRequests(Rate.of_empty(bucket))


def open_reset(*, tenant_id: str, secret: str) -> AccountTicket:
    """Return the ticket of a link that can set a password. Changes nothing. Raises the errors of `usable`."""
    return usable(tenant_id=tenant_id, purpose=AccountTicket.Purpose.PASSWORD_RESET, secret=secret)


def open_unblock(*, tenant_id: str, secret: str) -> AccountTicket:
    """Return the ticket of a link that can lift a block. Changes nothing. Raises the errors of `usable`."""
    return usable(tenant_id=tenant_id, purpose=AccountTicket.Purpose.UNBLOCK, secret=secret)


def set_new_password(*, tenant_id: str, secret: str, password: str, ip: str = "", user_agent: str = "") -> AccountTicket:
    """Set a new password for the user of a link, once. A mailed link also verifies the email address, because the user received it there.

    A link that an application delivered verifies the address only if the application requested this verification. Receivers of the signal
    `password_changed` end sessions, refresh tokens, blocks and other links. Raises the errors of `usable`, and `PasswordTooWeak`. After
    `PasswordTooWeak`, the link still works.
    """
    try:
        ticket = _set_new_password(tenant_id, secret, password, ip, user_agent)
    except PasswordTooWeak as weak:
        if weak.problem.weakness is Weakness.BREACHED:
            # The transaction was rolled back; write the line outside it.
            _note_leak(open_reset(tenant_id=tenant_id, secret=secret), password, ip, user_agent)
        raise
    _note_leak(ticket, password, ip, user_agent)
    return ticket


@unit_of_work
def _set_new_password(tenant_id: str, secret: str, password: str, ip: str, user_agent: str) -> AccountTicket:
    ticket = open_reset(tenant_id=tenant_id, secret=secret)
    # Check the link again with the user locked: the second of two concurrent uses finds that the link is used up.
    user = locked_user(tenant_id=tenant_id, user_id=ticket.user.user_id)
    ticket = open_reset(tenant_id=tenant_id, secret=secret)
    check_password(user.connection, password, personal_data(user), user=user)
    changes: dict[str, Any] = {"password": password, **_verification(ticket, user)}
    update_user(tenant_id=tenant_id, user_id=user.user_id, changes=changes)
    # Use up all links of the user here: the receivers of `password_changed` keep them if the user had no password before.
    use_up(user, AccountTicket.Purpose.PASSWORD_RESET)
    _note(_CHANGED, ticket, user, ip, user_agent)
    return ticket


def _verification(ticket: AccountTicket, user: User) -> dict[str, Any]:
    # A mailed link proves the email address, because the user received it there. A link from an application may have arrived through any
    # channel.
    is_proven = user.email and ticket.parameters.get("marks_verified", True)
    return {"email_verified": True} if is_proven and not user.email_verified else {}


@unit_of_work
def lift_with_link(*, tenant_id: str, secret: str, ip: str = "", user_agent: str = "") -> AccountTicket:
    """Lift the blocks of the user for whom a link was made. A link works once. Raises the errors of `usable`."""
    ticket = open_unblock(tenant_id=tenant_id, secret=secret)
    user = locked_user(tenant_id=tenant_id, user_id=ticket.user.user_id)
    ticket = open_unblock(tenant_id=tenant_id, secret=secret)
    lift_blocks(tenant_id=tenant_id, user=user)
    use_up(user, AccountTicket.Purpose.UNBLOCK)
    _note(_UNBLOCKED, ticket, user, ip, user_agent)
    return ticket


def _note(code: str, ticket: AccountTicket, user: User, ip: str, user_agent: str) -> None:
    sign_in_log.note(tenant_id=user.tenant_id, type=code, is_success=True, **_line(ticket, user, ip, user_agent))


def _note_leak(ticket: AccountTicket, password: str, ip: str, user_agent: str) -> None:
    """Write a line to the sign-in log if the new password was found in a breach."""
    note_new_password(ticket.tenant_id, password, CHANGE, **_line(ticket, ticket.user, ip, user_agent))


def _line(ticket: AccountTicket, user: User, ip: str, user_agent: str) -> dict[str, Any]:
    return {"user": user, "client": ticket.client, "connection": user.connection.name, "ip": ip, "user_agent": user_agent}
