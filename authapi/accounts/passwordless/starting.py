"""Requests a code or a link. The response is the same, and takes the same time, whether or not an account exists.

Only the worker that sends the message (`messages`) looks up the account.
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
    """A client's request, which continues when the user opens the link. `state` contains the request in the format of its protocol."""

    protocol: str
    state: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Wanted:
    """A requested message. With `link`, the message contains a link, otherwise a code. `bound_to` has the same meaning as in `CodeAttempt`.

    `language` is a language that the tenant has enabled; if `language` is empty, the language of the user is used. `organization_id` is the
    organization of the login.
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
    """Let a worker send the requested message, if the user exists or the connection may create the user. Raises `TooManyCodes`.

    Also raises `messages.CannotSend` if no sender is configured for the channel.
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
        description="A link was requested." if wanted.link else "A code was requested.",
        user_name=wanted.address.value,
        client=wanted.client,
        connection=wanted.connection.name,
        ip=wanted.place.ip,
        user_agent=wanted.user_agent,
    )


def answer_of(row: PasswordlessCode) -> LinkAnswer:
    """Return the client's request, which continues when the link of the row is opened."""
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
    # Use the registered host of the login: the browser has a cookie only for this host.
    address = f"{wanted.host.issuer.rstrip('/')}{LINK_PATH}?ticket={contents.link}" if contents.link else ""
    return Contents(contents.code, address)


def _place(row: PasswordlessCode) -> str:
    return f"{row.tenant_id}:passwordless_code:{row.connection_id}:{row.address}:request"
