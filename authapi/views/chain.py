"""The short chain before a hot endpoint: method, bounded body, host, the endpoint itself, who pays for it, the error table.

One hop to a thread does it all; sessions, CSRF and messages have no place here. The tenant pays once its client is proven, the
address for what was refused (ADR 0073).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import InterfaceError, OperationalError
from oauthlib.oauth2 import OAuth2Error

from authapi.clients.origins import web_origin_of
from authapi.edge import mtls, throttling
from authapi.edge.address_rates import charged_debt, debt_of
from authapi.edge.addresses import Origin, origin_of
from authapi.edge.bodies import MAX_BODY_BYTES
from authapi.edge.charging import Charge
from authapi.edge.indebted import in_turn
from authapi.edge.open_rates import StrangerRefused, admitted_stranger
from authapi.edge.rate_figures import OPEN_ENDPOINTS
from authapi.edge.raw_headers import joined
from authapi.edge.throttling import Rate
from authapi.edge.unread_bodies import Body, BodyTooLarge, BodyTooSlow, ClientLeft, NoRoom, unread_bodies
from authapi.edge.whole_messages import ANSWER, BODY, TakeBody, WriteAnswer
from authapi.failures import Case, Failure, RequestRefused
from authapi.failures.oauth import OAuthCase, engine_failure
from authapi.failures.requests import RequestCase
from authapi.possession.presented import check_single
from authapi.possession.proofs import InvalidProof
from authapi.views import cors
from authapi.views.deciding import Decided, deciding
from foundation.memory import executor
from foundation.memory.ttl_cache import Cold, Missing
from identity.hosts import HostMatch, resolve_host

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_BODY_SECONDS = 30.0
# Host, client, keys, API, grant and settings may all be missing, one after the other.
_MOST_LOADS = 8
# A tenant on its way out answers as a suspended one: what it was is nobody's business.
_STATUSES = {**dict.fromkeys(("suspended", "deleting", "deleted"), RequestCase.TENANT_SUSPENDED), "draining": RequestCase.TENANT_DRAINING}


@dataclass(frozen=True)
class Call:
    """One request: its tenant, its sender, what was read of it, and who pays for it."""

    host: HostMatch
    address: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    charge: Charge
    # Not in any repr: `/userinfo` takes a token there.
    query: bytes = field(default=b"", repr=False)
    method: str = "GET"
    # What the route has taken out of the path, by name.
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """One answer, before the headers that every answer has."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    # Whether a success proves that the sender had a code, a token or a password. Otherwise the request is charged to its address.
    is_proof: bool = True
    # The one origin whose scripts may read it with cookies; empty where cookies do not count and every origin may.
    reader: str = ""


@dataclass(frozen=True)
class Later:
    """The rest of a request that has to wait for a password to be hashed."""

    work: Callable[[], Answer]


Endpoint = Callable[[Call], Answer | Later]
# Answers on the event loop. Raises `Cold`, with nothing done, for what the endpoint itself must answer.
AtOnce = Callable[[Call], Awaitable[Answer]]


def json_answer(members: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, orjson.dumps(members), headers or {})


def hot_endpoint(
    endpoint: Endpoint,
    *,
    name: str,
    methods: tuple[str, ...],
    in_words_of: Mapping[Case, Case] | None = None,
    takes_cookies: bool = False,
    at_once: AtOnce | None = None,
) -> Application:
    """Make an ASGI application of `endpoint`; `name` is what its rate is counted under.

    `in_words_of` names the cases that an interface words in its own way. With `takes_cookies` scripts of other origins may send
    cookies along; the endpoint judges their origin.

    An endpoint that finds out that a password will be hashed returns `Later`: the rest runs where slow work queues by itself.
    `at_once` is a fast path beside the endpoint: it answers what needs no thread but for a signature.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            reader = _page(scope) if takes_cookies else ""
            await _send(scope, send, Answer(204, b"", cors.preflight_headers(methods, reader=reader)), is_head=False)
            return
        origin, is_head = _origin(scope), scope["method"] == "HEAD"
        # Held until the answer: requests that wait for a thread take memory, too.
        with unread_bodies().held(origin.keys) as body:
            try:
                whole = await _read(body, scope, receive)
            except RequestRefused as refused:
                await _send(scope, send, _unread(refused, methods), is_head=is_head)
                return
            if whole is not None:
                answer = await _rated(_Request(endpoint, name, methods, scope, whole, origin, in_words_of or {}, at_once))
                await _send(scope, send, answer, is_head=is_head)

    return application


async def _read(body: Body, scope: Scope, receive: Receive) -> bytes | None:
    """Return the body, one byte longer than the limit where it is too long; None when the client has left."""
    take: TakeBody | None = scope.get("extensions", {}).get(BODY)
    try:
        whole = take() if take is not None else None
        if whole is not None:
            return body.take_whole(whole, limit=MAX_BODY_BYTES)
        return await body.read(receive, limit=MAX_BODY_BYTES, seconds=_BODY_SECONDS)
    except ClientLeft:
        return None
    except BodyTooLarge:
        # Refused in its turn: an unknown host is 404 before anything else.
        return bytes(MAX_BODY_BYTES + 1)
    except BodyTooSlow as error:
        raise RequestRefused(RequestCase.BODY_TOO_SLOW) from error
    except NoRoom as error:
        raise RequestRefused(RequestCase.UNAVAILABLE) from error


def _unread(refused: RequestRefused, methods: tuple[str, ...]) -> Answer:
    # The rest of the body is on its way; only a closed connection stops it.
    answer = _failed(refused, methods)
    return replace(answer, headers={**answer.headers, "Connection": "close"})


# Not frozen, as making one is a part of every request; the same holds for those below.
@dataclass(slots=True)
class _Request:
    """One request on its way to an endpoint."""

    endpoint: Endpoint
    name: str
    methods: tuple[str, ...]
    scope: Scope = field(repr=False)
    body: bytes = field(repr=False)
    origin: Origin
    words: Mapping[Case, Case]
    at_once: AtOnce | None = None
    # What the request has charged so far, by whichever path.
    charge: Charge | None = None

    @property
    def is_open(self) -> bool:
        """Whether the endpoint asks for no proof, so that the address pays for every request."""
        return self.name in OPEN_ENDPOINTS

    @property
    def paid(self) -> Charge:
        """What was charged, nothing where no tenant was found."""
        return self.charge or Charge("", self.name)


async def _rated(request: _Request) -> Answer:
    """Return the answer with the headers of the bucket that decided; what proved nothing is charged to its address."""
    # An address over its debt is still served, but never by more than one fast and one slow thread of a process.
    keys = request.origin.keys
    done = await in_turn(keys, partial(_worked, request))
    if isinstance(done, _Waiting):
        done = await in_turn(keys, partial(executor.run, partial(_finished, request, done), is_slow=True), is_slow=True)
    answer, rate = done.answer, done.rate
    # A failure of the service (5xx) is charged to neither.
    if rate is None and answer.status < 500:
        rate = await charged_debt(done.tenant_id, request.origin)
        if rate.is_exceeded:
            answer = replace(_failed(RequestRefused(RequestCase.TOO_MANY_REQUESTS), request.methods), reader=answer.reader)
    rate = rate or debt_of(done.tenant_id, request.origin)
    if answer.status == 429:
        # Its own headers stand where the bucket is known; a client must never read that something is left.
        rate = rate.used_up
    return replace(answer, headers=cors.answer_headers(answer.reader) | rate.headers | answer.headers)


async def _worked(request: _Request) -> _Done | _Waiting:
    """Answer on the event loop where that is possible, and otherwise in a thread."""
    done = None if request.at_once is None else await _done_at_once(request, request.at_once)
    return await executor.run(partial(_answer, request)) if done is None else done


async def _done_at_once(request: _Request, at_once: AtOnce) -> _Done | None:
    """Return the answer of the fast path, None for what it leaves to the endpoint: every refusal, and what cannot be remembered."""
    try:
        for _ in range(_MOST_LOADS):
            try:
                return await _tried_at_once(request, at_once)
            except Missing as missing:
                # Nothing was done yet. What is missing is loaded once for all requests that wait for it, and then they begin anew.
                await executor.remembered(missing.memory, missing.key)
            except throttling.NoPlace:
                # It was to be charged, and is not charged again when it begins anew.
                request.paid.rate = await throttling.hit_async(request.paid.tenant_id, request.name)
    except Decided as decided:
        return _Done(_failed(_worded(decided.error, request.words), request.methods), request.paid.tenant_id, request.paid.rate)
    except Exception as error:  # noqa: BLE001  (nothing was done yet: the endpoint finds out what is the matter, and says so)
        if not isinstance(error, Cold | SynchronousOnlyOperation | RequestRefused):
            logger.info("A fast path leaves a request to the endpoint: %s", type(error).__name__)
    finally:
        request.paid.may_wait = True
    return None


async def _tried_at_once(request: _Request, at_once: AtOnce) -> _Done:
    call = _call(request)
    call.charge.may_wait = False
    _check_request(call.method, request.methods, call.body)
    answer = await at_once(call)
    with deciding():
        if call.charge.rate is None:
            call.charge.rate = await throttling.hit_async(call.charge.tenant_id, request.name)
        return _Done(answer, call.charge.tenant_id, call.charge.rate)


def _page(scope: Scope) -> str:
    """Return the origin of the page whose script asks, empty for what is no origin of a web page."""
    named = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
    return named if web_origin_of(named) == named else ""


def _origin(scope: Scope) -> Origin:
    # A proxy may add a line of its own instead of extending the one that came.
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return origin_of((scope.get("client") or ("",))[0] or "", forwarded.decode("latin-1"), settings.TRUSTED_PROXIES)


@dataclass(slots=True)
class _Done:
    """An answer, and the rate of the bucket that was charged; None where nothing was proven."""

    answer: Answer
    tenant_id: str
    rate: Rate | None


@dataclass(slots=True)
class _Waiting:
    """What the slow threads go on with, and who has paid so far."""

    later: Later
    charge: Charge
    rate: Rate | None


def _call(request: _Request) -> Call:
    """Return the request as its endpoint sees it. Raises `RequestRefused`."""
    scope = request.scope
    headers = joined(scope["headers"])
    host = _tenant_of(headers)
    if request.charge is None or request.charge.tenant_id != host.tenant_id:
        request.charge = Charge(host.tenant_id, request.name)
    headers = mtls.without_untrusted(headers, scope["headers"], host)
    if "dpop" in headers:
        _check_single_proof(scope["headers"])
    named = scope["url_route"]["kwargs"] if "url_route" in scope else {}
    query = scope.get("query_string", b"")
    return Call(host, request.origin.address, headers, request.body, request.charge, query, scope["method"], named)


def _answer(request: _Request) -> _Done | _Waiting:
    rate: Rate | None = None
    try:
        call = _call(request)
        if request.is_open:
            rate = admitted_stranger(call.host.tenant_id, request.origin)
        _check_request(call.method, request.methods, call.body)
        if not request.is_open:
            call.charge.require_room()
        outcome = request.endpoint(call)
        if isinstance(outcome, Later):
            return _Waiting(outcome, call.charge, rate)
        return _settled(request, outcome, call.charge, rate)
    except StrangerRefused as refused:
        return _Done(_failed(RequestRefused(RequestCase.TOO_MANY_REQUESTS), request.methods), request.paid.tenant_id, refused.rate)
    except Exception as error:  # noqa: BLE001  (the edge: every failure becomes a row of the table)
        return _Done(_failed(_worded(error, request.words), request.methods), request.paid.tenant_id, rate or request.paid.rate)


def _finished(request: _Request, waiting: _Waiting) -> _Done:
    try:
        return _settled(request, waiting.later.work(), waiting.charge, waiting.rate)
    except Exception as error:  # noqa: BLE001  (the edge, as above)
        return _Done(_failed(_worded(error, request.words), request.methods), waiting.charge.tenant_id, waiting.rate or waiting.charge.rate)


def _settled(request: _Request, answer: Answer, charge: Charge, rate: Rate | None) -> _Done:
    if not request.is_open and answer.status < 300 and answer.is_proof:
        charge.settle()
    return _Done(answer, charge.tenant_id, rate or charge.rate)


def _check_single_proof(pairs: Iterable[tuple[bytes, bytes]]) -> None:
    try:
        check_single(pairs)
    except InvalidProof as error:
        raise RequestRefused(OAuthCase.INVALID_DPOP_PROOF, reason=str(error)) from error


def _tenant_of(headers: dict[str, str]) -> HostMatch:
    host = resolve_host(headers.get("host", ""))
    if host is None:
        raise RequestRefused(RequestCase.UNKNOWN_HOST)
    if host.status in _STATUSES:
        raise RequestRefused(_STATUSES[host.status])
    return host


def _check_request(method: str, methods: tuple[str, ...], body: bytes) -> None:
    if method not in methods and not (method == "HEAD" and "GET" in methods):
        raise RequestRefused(RequestCase.METHOD_NOT_ALLOWED, allowed=" and ".join(methods))
    if len(body) > MAX_BODY_BYTES:
        raise RequestRefused(RequestCase.BODY_TOO_LARGE, limit=MAX_BODY_BYTES)


def _worded(error: Exception, words: Mapping[Case, Case]) -> Exception:
    """Return the refusal in the words of the interface where that has its own."""
    case = words.get(error.case) if isinstance(error, RequestRefused) else None
    return error if case is None else RequestRefused(case)


def _failed(error: Exception, methods: tuple[str, ...]) -> Answer:
    failure = _failure(error)
    # No WWW-Authenticate: client libraries would raise their challenge error before reading the body.
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache", "Referrer-Policy": "no-referrer"}
    if failure.status == 405:
        headers["Allow"] = ", ".join(methods)
    if failure.status == 503:
        headers["Retry-After"] = "2"
    if isinstance(error, RequestRefused):
        headers |= error.headers
        if error.rate is not None:
            headers |= error.rate.headers
    told = error.members if isinstance(error, RequestRefused) else {}
    body = {"error": failure.error, "error_description": failure.description, **told}
    answer = json_answer(body, status=failure.status, headers=headers)
    return replace(answer, reader=error.reader) if isinstance(error, RequestRefused) else answer


def _failure(error: Exception) -> Failure:
    match error:
        case RequestRefused():
            return error.failure
        case OAuth2Error():
            return engine_failure(error)
        case OperationalError() | InterfaceError():
            logger.error("The database did not answer: %s", type(error).__name__)
            return RequestCase.UNAVAILABLE.failure
        case _:
            logger.error("A hot endpoint failed unexpectedly.", exc_info=error)
            return RequestCase.UNEXPECTED.failure


async def _send(scope: Scope, send: Send, answer: Answer, *, is_head: bool) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(answer.body))} if answer.body else {"Content-Length": "0"}
    if answer.status == 204:
        headers = {}
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers | answer.headers).items()]
    write: WriteAnswer | None = scope.get("extensions", {}).get(ANSWER)
    if write is not None and answer.body and "Connection" not in answer.headers and write(answer.status, pairs, answer.body):
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
