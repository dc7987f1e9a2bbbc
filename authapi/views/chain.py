"""Runs a hot endpoint (one that `config.asgi` calls without Django): finds the host, calls the endpoint, charges a rate limit, maps errors.

One thread runs all steps of a request, unless a fast path answers it on the event loop. A request is charged to the rate limit of the
tenant after the client has authenticated. A refused request is charged to the IP address of the sender (ADR 0073).
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
from authapi.views.closed_tenants import require_open
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
# How many times a fast path may start over because a value is not cached: host, client, keys, API, grant and settings are loaded singly.
_MOST_LOADS = 8


@dataclass(frozen=True)
class Call:
    """One request: its tenant, its sender, its contents, and the rate limit to which it is charged."""

    host: HostMatch
    address: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    charge: Charge
    # The query is in no `repr`, because `/userinfo` accepts a token in the query.
    query: bytes = field(default=b"", repr=False)
    method: str = "GET"
    # The values that the route has read from the path, by name.
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """One answer, without the headers that all answers share."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    # Whether success proves that the sender had a code, a token or a password. Otherwise the request is charged to the sender's IP address.
    is_proof: bool = True
    # The only origin whose scripts may read the answer to a request with cookies. Empty if cookies have no effect; then scripts of every
    # origin may read the answer.
    reader: str = ""


@dataclass(frozen=True)
class Later:
    """The rest of the work of a request. It needs a slow thread, for example to hash a password."""

    work: Callable[[], Answer]


Endpoint = Callable[[Call], Answer | Later]
# A function that answers on the event loop, or raises `Cold` before it changes anything. After `Cold`, the endpoint answers in a thread.
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
    """Return an ASGI application for `endpoint`; its rate is counted under `name`.

    `in_words_of` maps common error cases to the cases that the clients of this endpoint expect. With `takes_cookies`, scripts of other
    origins may send cookies, and the endpoint checks their origin.

    An endpoint that must hash a password returns `Later`; its work then runs in the queue of slow work. `at_once` is a fast path: it
    answers on the event loop, and uses a thread only for signatures.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            reader = _page(scope) if takes_cookies else ""
            await _send(scope, send, Answer(204, b"", cors.preflight_headers(methods, reader=reader)), is_head=False)
            return
        origin, is_head = _origin(scope), scope["method"] == "HEAD"
        # The body is counted as used memory until the answer is sent, because requests that wait for a thread use memory, too.
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
    """Return the body; None if the client has disconnected. For a body above the limit, return more null bytes than the limit allows."""
    take: TakeBody | None = scope.get("extensions", {}).get(BODY)
    try:
        whole = take() if take is not None else None
        if whole is not None:
            return body.take_whole(whole, limit=MAX_BODY_BYTES)
        return await body.read(receive, limit=MAX_BODY_BYTES, seconds=_BODY_SECONDS)
    except ClientLeft:
        return None
    except BodyTooLarge:
        # `_check_request` refuses these bytes later: a request with an unknown host must get 404 before any other error.
        return bytes(MAX_BODY_BYTES + 1)
    except BodyTooSlow as error:
        raise RequestRefused(RequestCase.BODY_TOO_SLOW) from error
    except NoRoom as error:
        raise RequestRefused(RequestCase.UNAVAILABLE) from error


def _unread(refused: RequestRefused, methods: tuple[str, ...]) -> Answer:
    # The rest of the body may still arrive, so the connection must be closed.
    answer = _failed(refused, methods)
    return replace(answer, headers={**answer.headers, "Connection": "close"})


# This class and the classes below are not frozen, because each request creates instances, and frozen instances are slower to create.
@dataclass(slots=True)
class _Request:
    """One request that is being processed."""

    endpoint: Endpoint
    name: str
    methods: tuple[str, ...]
    scope: Scope = field(repr=False)
    body: bytes = field(repr=False)
    origin: Origin
    words: Mapping[Case, Case]
    at_once: AtOnce | None = None
    # The charge of the request so far, made by the fast path or by the thread.
    charge: Charge | None = None

    @property
    def is_open(self) -> bool:
        """Whether the endpoint needs no authentication, so that every request is charged to the sender."""
        return self.name in OPEN_ENDPOINTS

    @property
    def paid(self) -> Charge:
        """The charge so far; an empty charge if no tenant was found."""
        return self.charge or Charge("", self.name)


async def _rated(request: _Request) -> Answer:
    """Return the answer with the headers of the charged bucket. If the request proved nothing, this is the bucket of the IP address."""
    # An IP address whose debt is above the limit is still served, but by at most one fast and one slow thread of a process.
    keys = request.origin.keys
    done = await in_turn(keys, partial(_worked, request))
    if isinstance(done, _Waiting):
        done = await in_turn(keys, partial(executor.run, partial(_finished, request, done), is_slow=True), is_slow=True)
    answer, rate = done.answer, done.rate
    # A failure of the service (5xx) is not charged.
    if rate is None and answer.status < 500:
        rate = await charged_debt(done.tenant_id, request.origin)
        if rate.is_exceeded:
            answer = replace(_failed(RequestRefused(RequestCase.TOO_MANY_REQUESTS), request.methods), reader=answer.reader)
    rate = rate or debt_of(done.tenant_id, request.origin)
    if answer.status == 429:
        # If a bucket refused the request, the answer already has the headers of this bucket. Any other 429 answer must state that no
        # requests are left.
        rate = rate.used_up
    return replace(answer, headers=cors.answer_headers(answer.reader) | rate.headers | answer.headers)


async def _worked(request: _Request) -> _Done | _Waiting:
    """Answer on the event loop if possible, otherwise in a thread."""
    done = None if request.at_once is None else await _done_at_once(request, request.at_once)
    return await executor.run(partial(_answer, request)) if done is None else done


async def _done_at_once(request: _Request, at_once: AtOnce) -> _Done | None:
    """Return the answer of the fast path; None if it refuses the request, or if a value cannot be cached. The endpoint then answers."""
    try:
        for _ in range(_MOST_LOADS):
            try:
                return await _tried_at_once(request, at_once)
            except Missing as missing:
                # The request has changed nothing yet. The missing value is loaded once for all waiting requests, which then start over.
                await executor.remembered(missing.memory, missing.key)
            except throttling.NoPlace:
                # Charge the request now. It is not charged again when it starts over.
                request.paid.rate = await throttling.hit_async(request.paid.tenant_id, request.name)
    except Decided as decided:
        return _Done(_failed(_worded(decided.error, request.words), request.methods), request.paid.tenant_id, request.paid.rate)
    except Exception as error:  # noqa: BLE001  (nothing was done yet: the endpoint repeats the request and reports the error)
        if not isinstance(error, Cold | SynchronousOnlyOperation | RequestRefused):
            logger.info("A fast path leaves a request to its endpoint after %s", type(error).__name__)
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
    """Return the origin of the page whose script sends the request; empty if it is not a web origin."""
    named = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
    return named if web_origin_of(named) == named else ""


def _origin(scope: Scope) -> Origin:
    # Join all lines: a proxy may add a line of its own instead of extending the line that it received.
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return origin_of((scope.get("client") or ("",))[0] or "", forwarded.decode("latin-1"), settings.TRUSTED_PROXIES)


@dataclass(slots=True)
class _Done:
    """An answer. `rate` is the rate of the bucket that was charged; None if the request proved nothing."""

    answer: Answer
    tenant_id: str
    rate: Rate | None


@dataclass(slots=True)
class _Waiting:
    """The work for a slow thread, and the charge so far."""

    later: Later
    charge: Charge
    rate: Rate | None


def _call(request: _Request) -> Call:
    """Return the request as its endpoint reads it. Raises `RequestRefused`."""
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
    except Exception as error:  # noqa: BLE001  (the outermost layer: every exception becomes an error answer)
        return _Done(_failed(_worded(error, request.words), request.methods), request.paid.tenant_id, rate or request.paid.rate)


def _finished(request: _Request, waiting: _Waiting) -> _Done:
    try:
        return _settled(request, waiting.later.work(), waiting.charge, waiting.rate)
    except Exception as error:  # noqa: BLE001  (the outermost layer, as above)
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
    require_open(host)
    return host


def _check_request(method: str, methods: tuple[str, ...], body: bytes) -> None:
    if method not in methods and not (method == "HEAD" and "GET" in methods):
        raise RequestRefused(RequestCase.METHOD_NOT_ALLOWED, allowed=" and ".join(methods))
    if len(body) > MAX_BODY_BYTES:
        raise RequestRefused(RequestCase.BODY_TOO_LARGE, limit=MAX_BODY_BYTES)


def _worded(error: Exception, words: Mapping[Case, Case]) -> Exception:
    """Replace the case of a refusal by the case that `words` has for it. Return any other error unchanged."""
    case = words.get(error.case) if isinstance(error, RequestRefused) else None
    return error if case is None else RequestRefused(case)


def _failed(error: Exception, methods: tuple[str, ...]) -> Answer:
    failure = _failure(error)
    # Send no header `WWW-Authenticate`: with it, client libraries would raise their own error before they read the body.
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
