"""The short chain before a hot endpoint: method, bounded body, host, rate, the endpoint itself, the error table.

One hop to a thread does it all; sessions, CSRF and messages have no place here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from django.db import InterfaceError, OperationalError
from oauthlib.oauth2 import OAuth2Error

from authapi import executor, mtls, throttling
from authapi.addresses import client_address
from authapi.bodies import MAX_BODY_BYTES
from authapi.failures import FAILURES, Case, Failure, RequestRefused, engine_failure
from authapi.views import cors
from identity.hosts import HostMatch, resolve_host

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_BODY_SECONDS = 30.0
# A tenant on its way out answers as a suspended one: what it was is nobody's business.
_STATUSES = {**dict.fromkeys(("suspended", "deleting", "deleted"), Case.TENANT_SUSPENDED), "draining": Case.TENANT_DRAINING}


@dataclass(frozen=True)
class Call:
    """One request: its tenant, its sender, and what was read of it."""

    host: HostMatch
    address: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    # Not in any repr: `/userinfo` takes a token there.
    query: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Answer:
    """One answer, before the headers that every answer has."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


Endpoint = Callable[[Call], Answer]


def json_answer(members: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, orjson.dumps(members), headers or {})


def never_slow(_body: bytes) -> bool:
    return False


def hot_endpoint(endpoint: Endpoint, *, name: str, methods: tuple[str, ...], is_slow: Callable[[bytes], bool] = never_slow) -> Application:
    """Make an ASGI application of `endpoint`; `name` is what its rate is counted under.

    `is_slow` tells by the body which requests may have to wait for a password to be hashed: they queue by themselves.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "OPTIONS":
            await _send(send, Answer(204, b"", cors.preflight_headers(methods)), is_head=False)
            return
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _read_body(receive)
        except TimeoutError:
            await _send(send, _failed(RequestRefused(Case.BODY_TOO_SLOW), methods), is_head=False)
            return
        if body is None:
            return
        answer = await executor.run(partial(_answer, endpoint, name, methods, scope, body), is_slow=is_slow(body))
        await _send(send, answer, is_head=method == "HEAD")

    return application


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, cut one byte after the limit; None when the client has gone."""
    chunks, size, more = [], 0, True
    while more and size <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
    return b"".join(chunks)[: MAX_BODY_BYTES + 1]


def _answer(endpoint: Endpoint, name: str, methods: tuple[str, ...], scope: Scope, body: bytes) -> Answer:
    headers = _joined(scope["headers"])
    rate: throttling.Rate | None = None
    try:
        host = _tenant_of(headers)
        headers = mtls.without_untrusted(headers, scope["headers"], host)
        rate = throttling.hit(host.tenant_id, name)
        if rate.is_exceeded:
            raise RequestRefused(Case.TOO_MANY_REQUESTS)
        _check_request(scope["method"], methods, body)
        address = client_address((scope.get("client") or ("",))[0], headers.get("x-forwarded-for", ""), settings.TRUSTED_PROXIES)
        answer = endpoint(Call(host, address, headers, body, scope.get("query_string", b"")))
    except Exception as error:  # noqa: BLE001  (the edge: every failure becomes a row of the table)
        answer = _failed(error, methods)
    return replace(answer, headers=cors.answer_headers() | (rate.headers if rate else {}) | answer.headers)


def _joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by name, repeated lines as one list (RFC 9110, 5.3): what may come once only is then unreadable."""
    headers: dict[str, str] = {}
    for key, value in pairs:
        name, text = key.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


def _tenant_of(headers: dict[str, str]) -> HostMatch:
    host = resolve_host(headers.get("host", ""))
    if host is None:
        raise RequestRefused(Case.UNKNOWN_HOST)
    if host.status in _STATUSES:
        raise RequestRefused(_STATUSES[host.status])
    return host


def _check_request(method: str, methods: tuple[str, ...], body: bytes) -> None:
    if method not in methods and not (method == "HEAD" and "GET" in methods):
        raise RequestRefused(Case.METHOD_NOT_ALLOWED, allowed=" and ".join(methods))
    if len(body) > MAX_BODY_BYTES:
        raise RequestRefused(Case.BODY_TOO_LARGE, limit=MAX_BODY_BYTES)


def _failed(error: Exception, methods: tuple[str, ...]) -> Answer:
    failure = _failure(error)
    # No WWW-Authenticate: client libraries would raise their challenge error before reading the body.
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache", "Referrer-Policy": "no-referrer"}
    if failure.status == 405:
        headers["Allow"] = ", ".join(methods)
    if failure.status == 503:
        headers["Retry-After"] = "2"
    return json_answer({"error": failure.error, "error_description": failure.description}, status=failure.status, headers=headers)


def _failure(error: Exception) -> Failure:
    match error:
        case RequestRefused():
            return error.failure
        case OAuth2Error():
            return engine_failure(error)
        case OperationalError() | InterfaceError():
            logger.error("The database did not answer: %s", type(error).__name__)
            return FAILURES[Case.UNAVAILABLE]
        case _:
            logger.error("A hot endpoint failed unexpectedly.", exc_info=error)
            return FAILURES[Case.UNEXPECTED]


async def _send(send: Send, answer: Answer, *, is_head: bool) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(answer.body))} if answer.body else {"Content-Length": "0"}
    if answer.status == 204:
        headers = {}
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers | answer.headers).items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
