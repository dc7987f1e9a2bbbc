"""The table of protocols. A protocol is five functions; a login calls them and imports no protocol.

A view of a protocol reads and checks a request, finds the client, and hands a `ProtocolRequest` to `authapi.login.flow.begin`.
From then on the login works for the client: it asks the protocol what the client wishes, shows the pages that are due, and at
the end has the protocol answer or refuse. The request may wait in a row for half an hour; the protocol sees it again in each
function as it put it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.login.wish import Terms, Wish
from authapi.models import Client, Session
from identity.hosts import HostMatch
from identity.models import Organization, User


@dataclass(frozen=True)
class ProtocolRequest:
    """What a client asked for, as its protocol put it.

    `state` is JSON: names to texts, numbers, switches, lists and objects. The login seals it in its row and never reads it, so it
    may be larger than an address. The client is read anew for each HTTP request: its settings may change while people log in.
    """

    host: HostMatch
    client: Client
    state: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class CompleteLogin:
    """A login that may be answered: the session with its user and connection, the organization, and the terms for this user."""

    session: Session
    organization: Organization | None
    terms: Terms


@dataclass(frozen=True)
class BrowserCall:
    """One place that a browser is sent to: by a redirect, or, with `fields`, by a form that posts itself."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Participant:
    """A client that was answered in a session, with what the protocol noted about that (`authapi.login.sessions.note_client`)."""

    client: Client
    state: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SessionEnd:
    """A session that ends, inside the transaction that deletes it.

    `participants` are those that this protocol noted, in their order. `reason` is an `Initiator`. `browser_handle` is set where a
    browser is at hand and can be sent round: a participant sends it back with its answer. It is empty where an administrator, the
    clock or a changed account ends the session.
    """

    session: Session
    participants: Sequence[Participant]
    reason: str
    browser_handle: str = ""


@dataclass(frozen=True)
class RoundTrip:
    """A participant that only the browser can tell of a logout: it goes to `call`, and comes back with the handle.

    `state` is what the protocol needs in order to check the participant's answer, such as the id of its request.
    """

    client_id: str
    call: BrowserCall
    state: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Protocol:
    """One entry of the table. `name` stands in stored rows and never changes.

    `wish_of(request)` returns what the login must do. It is called at the beginning and again for every page. It raises
    `RequestRefused` only where there is no trusted address to answer to: a page tells the person. Any other refusal goes into
    `Wish.refusal`, and the login hands it to `refuse` when the wish is needed. Without effects.

    `terms(request, user, organization)` returns what the client gets for the user. It is called with `None` for the user before
    people log in, to refuse early what no user may get, and never for a wish that is refused: what `wish_of` has checked needs no
    second check. Raises `RequestRefused`, which the login hands to `refuse`. Without effects.

    `answer(http_request, request, login)` makes what the client asked for and returns the Django response that carries it: a
    redirect, or a page with a form that posts itself. It notes the client as a participant of the session (`note_client`). Raises
    `RequestRefused`, which the login hands to `refuse`. It is called once more when people press a button twice.

    `refuse(http_request, request, refused)` returns the Django response that tells the client why there is no login. Raises
    `RequestRefused` where there is no trusted address, as `wish_of` does.

    `end_session(ending)` tells the participants. It is called for every session that ends and every protocol, also without
    participants, inside the transaction: no HTTP here. For a server call (back-channel) it writes rows, and a task sends them after
    the commit. For a participant that needs the browser (front-channel) it returns a `RoundTrip`; without `browser_handle`
    it returns none.
    """

    name: str
    wish_of: Callable[[ProtocolRequest], Wish]
    terms: Callable[[ProtocolRequest, User | None, Organization | None], Terms]
    answer: Callable[[HttpRequest, ProtocolRequest, CompleteLogin], HttpResponse]
    refuse: Callable[[HttpRequest, ProtocolRequest, RequestRefused], HttpResponse]
    end_session: Callable[[SessionEnd], Sequence[RoundTrip]]


_TABLE: dict[str, Protocol] = {}


def register(protocol: Protocol) -> None:
    """Add an entry. Raises `ValueError` for a name that another protocol has."""
    if _TABLE.setdefault(protocol.name, protocol) is not protocol:
        raise ValueError(f"There is a protocol {protocol.name!r} already.")


def unregister(protocol: Protocol) -> None:
    """Remove an entry; logins of the protocol that are under way count as expired. For tests."""
    _TABLE.pop(protocol.name, None)


def protocol_named(name: str) -> Protocol:
    """Return the entry of this name. Raises `KeyError` where there is none."""
    return _TABLE[name]


def protocols() -> tuple[Protocol, ...]:
    """Return every entry, in the order of registration."""
    return tuple(_TABLE.values())
