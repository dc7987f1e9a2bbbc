"""The table of protocols. A protocol consists of five functions, which a login calls. The code of the login imports no protocol.

A view of a protocol reads and checks a request, finds the client, and passes a `ProtocolRequest` to `authapi.login.flow.begin`. From then
on the login calls the protocol: it calls `wish_of`, shows the pages that the wish needs, and at the end calls `answer` or
`refuse`. The request may be stored in a row for `AUTHORIZATION_REQUEST_SECONDS`. Each function of the protocol gets the stored request
unchanged.
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
    """The request of a client, as its protocol represents it.

    `state` is a JSON object whose members have values of any JSON type. The login seals the state in its row and never reads it. The state
    may be longer than a URL. The client is loaded again for each HTTP request, because its settings may change during a login.
    """

    host: HostMatch
    client: Client
    state: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class CompleteLogin:
    """A login that is ready to be answered: the session with its user and connection, the organization, and the terms for this user."""

    session: Session
    organization: Organization | None
    terms: Terms


@dataclass(frozen=True)
class BrowserCall:
    """A URL to which the browser is sent by a redirect or, if there are `fields`, by a form that posts itself."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Participant:
    """A client whose request was answered in a session, with the state that its protocol stored (`authapi.login.sessions.note_client`)."""

    client: Client
    state: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SessionEnd:
    """The end of a session, inside the transaction that deletes the session.

    `participants` are the clients that this protocol stored, oldest first. `reason` is an `Initiator`. `browser_handle` is set if a
    browser is present and can be redirected: a participant returns the handle with its answer. The handle is empty if an administrator, an
    expiry or a changed account ends the session.
    """

    session: Session
    participants: Sequence[Participant]
    reason: str
    browser_handle: str = ""


@dataclass(frozen=True)
class RoundTrip:
    """A participant that is notified of a logout through the browser. The browser is sent to `call` and returns with the handle.

    `state` is the data with which the protocol checks the participant's answer, such as the id of its request.
    """

    client_id: str
    call: BrowserCall
    state: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Protocol:
    """One entry of the table. `name` is in stored rows and never changes.

    `wish_of(request)` returns what the login must do. The login calls this function at the beginning and again for every page. The function
    raises `RequestRefused` only if there is no trusted URL to which the answer can be sent; a page then shows the refusal. The function
    puts any other refusal into `Wish.refusal`, and the login passes that refusal to `refuse` when it needs the wish. The function has no
    side effects.

    `terms(request, user, organization)` returns what the client gets for the user. Before the user logs in, `user` is `None`, and the
    function refuses what no user may get. The login never calls this function for a refused wish, so the function does not repeat the
    checks of `wish_of`. The login passes a raised `RequestRefused` to `refuse`. The function has no side effects.

    `answer(http_request, request, login)` creates what the client requested and returns the Django response that contains it: a redirect,
    or a page with a form that posts itself. The function stores the client as a participant of the session (`note_client`). The login
    passes a raised `RequestRefused` to `refuse`. If a user presses a button twice, the login calls this function twice.

    `refuse(http_request, request, refused)` returns the Django response that tells the client why the login failed. Like `wish_of`, the
    function raises `RequestRefused` if there is no trusted URL.

    `end_session(ending)` notifies the participants. When a session ends, this function of each protocol is called, even without
    participants. The function runs inside the transaction, so it sends no HTTP requests. For a server call (back-channel) the function
    writes rows that a task sends after the commit. For a participant that needs the browser (front-channel) the function returns a
    `RoundTrip`, or no `RoundTrip` if `browser_handle` is empty.
    """

    name: str
    wish_of: Callable[[ProtocolRequest], Wish]
    terms: Callable[[ProtocolRequest, User | None, Organization | None], Terms]
    answer: Callable[[HttpRequest, ProtocolRequest, CompleteLogin], HttpResponse]
    refuse: Callable[[HttpRequest, ProtocolRequest, RequestRefused], HttpResponse]
    end_session: Callable[[SessionEnd], Sequence[RoundTrip]]


_TABLE: dict[str, Protocol] = {}


def register(protocol: Protocol) -> None:
    """Add an entry. Raises `ValueError` if another protocol has this name."""
    if _TABLE.setdefault(protocol.name, protocol) is not protocol:
        raise ValueError(f"There is a protocol {protocol.name!r} already.")


def unregister(protocol: Protocol) -> None:
    """Remove an entry, so that open logins of the protocol end as expired logins. For tests."""
    _TABLE.pop(protocol.name, None)


def protocol_named(name: str) -> Protocol:
    """Return the entry of this name. Raises `KeyError` for an unknown name."""
    return _TABLE[name]


def protocols() -> tuple[Protocol, ...]:
    """Return every entry, in the order of registration."""
    return tuple(_TABLE.values())
