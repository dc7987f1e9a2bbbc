"""Receives the files of user imports, the only large request bodies.

A body is stored on disk instead of in memory. No body is stored if the token is invalid.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import MutableMapping
from typing import IO, Any

from django.conf import settings

from authapi.edge.unread_bodies import ClientLeft
from authapi.possession.holders import SCHEMES
from authapi.tokens.verifying import TokenRefused, require_scope, verify_access_token_async
from config.server.hosts import Application, Receive, Scope, Send, answer, header
from events.stream.refusals import Refused, unavailable
from identity.hosts import HostMatch

_IMPORTS = "/api/v2/jobs/users-imports"
_SCOPE = "create:users"
_IN_MEMORY = 1024 * 1024
_PIECE = 256 * 1024
# A client needs a line of 2 Mbit/s to send 64 MB in this time. One slow upload occupies only one of `_PLACES`.
_BODY_SECONDS = 300.0
_PLACES = 4
_RETRY_AFTER_SECONDS = 10


def uploads(application: Application, *, otherwise: Application) -> Application:
    """Receive a body of up to `IMPORT_MAX_BYTES` for an import with a sufficient token; pass every other request to `otherwise`.

    Answers 413 above this limit, 408 when the body takes too long, and 503 while four other uploads are in progress.
    """
    places = asyncio.Semaphore(_PLACES)

    async def receive_upload(scope: Scope, receive: Receive, send: Send) -> None:
        if not await _may_upload(scope):
            await otherwise(scope, receive, send)
            return
        if places.locked():
            await answer(send, unavailable("Too many uploads at once. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS))
            return
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            try:
                async with places:
                    await _spool(scope, receive, file)
            except Refused as refusal:
                await answer(send, refusal)
                return
            except ClientLeft:
                return
            file.seek(0)
            await application(scope, _replayed(file, receive), send)

    return receive_upload


async def _may_upload(scope: Scope) -> bool:
    """Tell whether this is an import with a sufficient token. Django answers any other request."""
    match: HostMatch | None = scope["host_match"]
    if scope["method"] != "POST" or scope["path"] != _IMPORTS or match is None:
        return False
    kind, _, token = header(scope, b"authorization").partition(" ")
    if kind.lower() not in SCHEMES:
        return False
    try:
        # The management interface checks the proof of possession later. A check here would use up the proof, which is valid only once.
        require_scope(await verify_access_token_async(token.strip(), host=match, takes_bound=True), _SCOPE)
    except TokenRefused:
        return False
    return True


async def _spool(scope: Scope, receive: Receive, file: IO[bytes]) -> None:
    limit = settings.IMPORT_MAX_BYTES
    too_large = Refused(413, f"The body is larger than {limit} bytes.", code="invalid_body", headers=[(b"connection", b"close")])
    announced = header(scope, b"content-length")
    if announced.isascii() and announced.isdigit() and int(announced) > limit:
        raise too_large
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                body = message.get("body", b"")
                size += len(body)
                if size > limit:
                    raise too_large
                file.write(body)
                if not message.get("more_body", False):
                    return
    except TimeoutError as error:
        raise Refused(408, "The body took too long.", headers=[(b"connection", b"close")]) from error


def _replayed(file: IO[bytes], receive: Receive) -> Receive:
    is_over = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal is_over
        if is_over:
            return await receive()
        piece = file.read(_PIECE)
        is_over = len(piece) < _PIECE
        return {"type": "http.request", "body": piece, "more_body": not is_over}

    return replay
