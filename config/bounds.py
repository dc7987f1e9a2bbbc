"""Bounds on what synchronous requests may take: the size of a body, the time to send it, and how many run at once."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from config.hosts import Application, Receive, Scope, Send, answer, header
from events.stream.refusals import Refused, unavailable

_BODY_SECONDS = 30.0
_WAIT_SECONDS = 2.0
_RETRY_AFTER_SECONDS = 2


class ClientLeft(Exception):
    """The client went away before its request was complete."""


def bounded_body(application: Application, *, limit: int) -> Application:
    """Read the whole body before anything else is done: 413 above `limit`, 408 when it takes too long."""

    async def read_first(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _body(scope, receive, limit)
        except Refused as refusal:
            await answer(send, refusal)
            return
        except ClientLeft:
            return
        await application(scope, _replayed(body, receive), send)

    return read_first


def bounded_count(application: Application, *, limit: int) -> Application:
    """Run at most `limit` requests at once; the next one waits two seconds, then it is 503."""
    free = asyncio.Semaphore(limit)

    async def wait_for_turn(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await free.acquire()
        except TimeoutError:
            await answer(send, unavailable("The server is busy. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS))
            return
        try:
            await application(scope, receive, send)
        finally:
            free.release()

    return wait_for_turn


async def _body(scope: Scope, receive: Receive, limit: int) -> bytes:
    too_large = Refused(413, f"The body is larger than {limit} bytes.", code="invalid_body", headers=[(b"connection", b"close")])
    announced = header(scope, b"content-length")
    if announced.isascii() and announced.isdigit() and int(announced) > limit:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > limit:
                    raise too_large
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError as error:
        raise Refused(408, "The body took too long.", headers=[(b"connection", b"close")]) from error


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
