"""Tickets that applications request and deliver themselves: links that set a password or verify an email address.

These tickets are in the same table as the tickets of mailed links. The row of a ticket that an application
requested also contains the return URL. The link never contains the return URL: otherwise a person who changes the link could decide where
the browser is sent after the link was used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from authapi.accounts.account_mails import RESET_PATH
from authapi.models import AccountTicket, Client
from authapi.services.account_tickets import issue
from foundation.database.transactions import unit_of_work
from foundation.secrets import vault
from identity.hosts import default_address
from identity.mail.verification import hand_out_ticket, link_of
from identity.models import Organization, User
from identity.services.failures import Invalid, NotSupported
from identity.services.profile_rules import check_password, personal_data
from identity.services.users import locked_user

# Default lifetime of a link in seconds: five days, as in the upstream system. The maximum is 30 days, because a link that changes a
# password must always expire.
LIFE_SECONDS = 432_000
MOST_LIFE_SECONDS = 2_592_000
_LONGEST_ADDRESS = 2048


@dataclass(frozen=True)
class WayBack:
    """Where the browser is sent after the link was used: to `result_url`, with the outcome as parameters. Without a `result_url`: to the
    login of `client`."""

    result_url: str = ""
    tells_email: bool = False
    client: Client | None = None
    organization: Organization | None = None
    life_seconds: int = LIFE_SECONDS

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a ticket, without the client.

        The row of a password ticket has a column for the client. The row of an email ticket has no such column, so `create_email_ticket`
        adds the client id to these parameters.
        """
        named = {"result_url": self.result_url, "tells_email": self.tells_email}
        belonging = {"organization_id": self.organization.pk if self.organization else ""}
        return {name: value for name, value in {**named, **belonging}.items() if value}


@unit_of_work
def create_password_ticket(*, user: User, way_back: WayBack, marks_verified: bool, password: str = "", address: str = "") -> str:
    """Return a link at which a user sets a new password, or confirms the given `password`.

    Raises `NotSupported` for a user whose connection is not a database, `Invalid` for an invalid `result_url`, and
    `PasswordTooWeak`.
    """
    user = locked_user(tenant_id=user.tenant_id, user_id=user.user_id)
    if not user.connection.is_database:
        raise NotSupported("Only users of a database connection have a password.")
    _check(way_back)
    parameters: dict[str, Any] = {**way_back.parameters, "marks_verified": marks_verified}
    if password:
        check_password(user.connection, password, personal_data(user), user=user)
        parameters["sealed_password"] = vault.seal(password, place=password_place(user.tenant_id, user.pk))
    ticket, secret = issue(
        user=user,
        purpose=AccountTicket.Purpose.PASSWORD_RESET,
        client=way_back.client,
        email=user.email or "",
        life=timedelta(seconds=way_back.life_seconds),
        **parameters,
    )
    return f"{link_base(ticket.tenant_id, address)}{RESET_PATH}?ticket={secret}"


@unit_of_work
def create_email_ticket(*, user: User, way_back: WayBack, identity: tuple[str, str] | None, address: str = "") -> str:
    """Return a link at which a user verifies the email address of the account or of a linked `identity` (provider, id).

    Raises `NotFound` if the identity is not linked to the user, and `Invalid` if there is no email address to verify or `result_url` is
    invalid.
    """
    _check(way_back)
    client = {"client_id": way_back.client.client_id} if way_back.client else {}
    ticket = hand_out_ticket(
        user=user, identity=identity, life=timedelta(seconds=way_back.life_seconds), parameters={**way_back.parameters, **client}
    )
    return link_of(ticket, link_base(ticket.tenant_id, address))


def is_prepared(ticket: AccountTicket) -> bool:
    """Tell whether the application has chosen the password, so that the user only has to confirm it."""
    return bool(ticket.parameters.get("sealed_password"))


def prepared_password(ticket: AccountTicket) -> str:
    """Return the password that the application has chosen. Empty if the user must choose a password."""
    return (
        vault.unseal(ticket.parameters["sealed_password"], place=password_place(ticket.tenant_id, ticket.user_id))
        if is_prepared(ticket)
        else ""
    )


def is_result_address(address: str) -> bool:
    """Tell whether a browser may be sent to this URL after the link was used. The scheme must be https; with `INSECURE_HTTP`, http is
    allowed, too."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    schemes = ("https", "http") if settings.INSECURE_HTTP else ("https",)
    has_no_secrets = parts.username is None and parts.password is None
    is_clean = not any(character.isspace() or ord(character) < 0x20 or character == "\\" for character in address)
    return parts.scheme in schemes and bool(parts.hostname) and has_no_secrets and is_clean and len(address) <= _LONGEST_ADDRESS


def link_base(tenant_id: str, asked_at: str) -> str:
    """Return the base URL of the tenant. Links begin with this URL. Raises `NotSupported` for a tenant without a verified domain."""
    # A loopback URL needs the port, which the domain of the tenant does not contain.
    base = (settings.INSECURE_HTTP and asked_at) or default_address(tenant_id)
    if not base:
        raise NotSupported("The tenant has no verified domain to which a link could point.")
    return base


def _check(way_back: WayBack) -> None:
    problems: dict[str, list[str]] = {}
    if way_back.result_url and not is_result_address(way_back.result_url):
        problems["result_url"] = ["Expected an https address without user name and password"]
    if not 0 < way_back.life_seconds <= MOST_LIFE_SECONDS:
        problems["ttl_sec"] = [f"Between 1 and {MOST_LIFE_SECONDS} seconds"]
    if problems:
        raise Invalid(problems)


def password_place(tenant_id: str, user_key: int) -> str:
    """Return the associated data for encrypting the password that an application has chosen for a user."""
    return f"{tenant_id}:user:{user_key}:prepared_password"
