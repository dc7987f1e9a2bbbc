"""Limits of synchronous requests: the size of the body, the time in which it must arrive, and the number of concurrent requests."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from authapi.edge.unread_bodies import BodyTooLarge, BodyTooSlow, ClientLeft, NoRoom, unread_bodies
from config.server.hosts import Application, Receive, Scope, Send, answer, answer_reader, header
from events.stream.admission import origin_of_scope
from events.stream.refusals import Header, Refused, unavailable

_BODY_SECONDS = 30.0
_WAIT_SECONDS = 2.0
_RETRY_AFTER_SECONDS = 2
_CLOSE: Header = (b"connection", b"close")


def bounded_body(application: Application, *, limit: int) -> Application:
    """Read the whole body before the application runs.

    Answers 413 if the body has more than `limit` bytes, 408 if the body takes too long, and 503 if the memory for bodies is full.
    """

    async def read_first(scope: Scope, receive: Receive, send: Send) -> None:
        with unread_bodies().held(origin_of_scope(scope).keys) as body:
            try:
                _check_announced(scope, limit)
                whole = await body.read(receive, limit=limit, seconds=_BODY_SECONDS)
            except ClientLeft:
                return
            except (BodyTooLarge, BodyTooSlow, NoRoom) as error:
                await answer(send, _refusal(error, limit))
                return
            await application(scope, _replayed(whole, receive), send)

    return read_first


def bounded_count(application: Application, *, limit: int) -> Application:
    """Run at most `limit` requests at once. A further request waits up to two seconds, then gets 503."""
    free = asyncio.Semaphore(limit)

    async def wait_for_turn(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await free.acquire()
        except TimeoutError:
            busy = unavailable("The server is busy. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS)
            await answer_reader(scope, send, busy)
            return
        try:
            await application(scope, receive, send)
        finally:
            free.release()

    return wait_for_turn


def _check_announced(scope: Scope, limit: int) -> None:
    announced = header(scope, b"content-length")
    if announced.isascii() and announced.isdigit() and int(announced) > limit:
        raise BodyTooLarge


def _refusal(error: Exception, limit: int) -> Refused:
    match error:
        case BodyTooLarge():
            return Refused(413, f"The body is larger than {limit} bytes.", code="invalid_body", headers=[_CLOSE])
        case BodyTooSlow():
            return Refused(408, str(error.__doc__), headers=[_CLOSE])
        case _:
            refusal = unavailable("Too many requests are unfinished. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS)
            refusal.headers.append(_CLOSE)
            return refusal


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
