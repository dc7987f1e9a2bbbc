"""Asking for a code or a link. The answer is the same, and takes the same time, whether there is an account or not.

The account is looked for by the worker that hands the message over (`messages`), never here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from authapi.accounts.passwordless import messages
from authapi.accounts.passwordless.addresses import Address, Channel
from authapi.accounts.passwordless.codes import Contents, keep_code
from authapi.accounts.passwordless.limits import Place, take_code
from authapi.accounts.passwordless.options import read_options
from authapi.models import Client, PasswordlessCode
from authapi.services import sign_in_log
from foundation.database.transactions import unit_of_work
from foundation.secrets import vault
from identity.hosts import HostMatch
from identity.models import Connection

LINK_PATH = "/u/passwordless/link"
_SENT = {Channel.EMAIL: "cls", Channel.SMS: "cs"}


@dataclass(frozen=True)
class LinkAnswer:
    """What a link answers to, when it is opened: a client's request in the words of its protocol."""

    protocol: str
    state: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Wanted:
    """A message that is asked for. With `link` it holds a link, otherwise a code. `bound_to` is that of a `CodeAttempt`.

    `language` is one that the tenant enables; empty lets that of the user decide. `organization_id` is that of the login.
    """

    host: HostMatch
    client: Client
    connection: Connection
    address: Address
    place: Place
    user_agent: str = ""
    language: str = ""
    bound_to: str = ""
    link: LinkAnswer | None = None
    takes_sign_up: bool = True
    organization_id: str = ""


@unit_of_work
def start(wanted: Wanted) -> None:
    """Have a worker send what is wanted, if there is a user for it or the connection makes one. Raises `TooManyCodes`.

    Also raises `messages.CannotSend` where no sender is configured for the channel.
    """
    messages.require_sender(wanted.connection, wanted.address)
    take_code(wanted.host.tenant_id, wanted.address, client=wanted.client, place=wanted.place)
    options = read_options(wanted.connection.options)
    row = _row(wanted)
    contents = keep_code(
        row, length=options.length, seconds=options.seconds, has_code=wanted.link is None, has_link=wanted.link is not None
    )
    messages.send_later(row, _shown(wanted, contents), organization_id=wanted.organization_id)
    sign_in_log.note(
        tenant_id=wanted.host.tenant_id,
        type=_SENT[wanted.address.channel],
        is_success=True,
        description="A link was asked for." if wanted.link else "A code was asked for.",
        user_name=wanted.address.value,
        client=wanted.client,
        connection=wanted.connection.name,
        ip=wanted.place.ip,
        user_agent=wanted.user_agent,
    )


def answer_of(row: PasswordlessCode) -> LinkAnswer:
    """Return what the link of a row answers to."""
    return LinkAnswer(row.protocol, orjson.loads(vault.unseal(row.sealed_request, place=_place(row))))


def _row(wanted: Wanted) -> PasswordlessCode:
    row = PasswordlessCode(
        tenant_id=wanted.host.tenant_id,
        client=wanted.client,
        connection=wanted.connection,
        address=wanted.address.value,
        bound_to=wanted.bound_to,
        takes_sign_up=wanted.takes_sign_up,
        language=wanted.language,
    )
    if wanted.link is not None:
        row.protocol = wanted.link.protocol
        row.sealed_request = vault.seal(orjson.dumps(dict(wanted.link.state)).decode(), place=_place(row))
    return row


def _shown(wanted: Wanted, contents: Contents) -> Contents:
    # The host of the login, which is a registered one: its browser has a cookie for no other.
    address = f"{wanted.host.issuer.rstrip('/')}{LINK_PATH}?ticket={contents.link}" if contents.link else ""
    return Contents(contents.code, address)


def _place(row: PasswordlessCode) -> str:
    return f"{row.tenant_id}:passwordless_code:{row.connection_id}:{row.address}:request"
