"""Sends exported files to every holder of a signed link: in pieces and outside Django, so that a slow client occupies no thread."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from urllib.parse import parse_qs

from django.db import Error as DatabaseError

from config.server.hosts import Receive, Scope, Send, answer
from events.stream.refusals import Refused, unavailable
from foundation.memory import executor
from identity.exports.export_files import ExportedFile, LinkExpired, open_link, read_piece
from identity.hosts import HostMatch
from identity.services.failures import NotFound

logger = logging.getLogger(__name__)

_WRITE_SECONDS = 20.0
_RETRY_AFTER_SECONDS = 2


async def download(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer `GET /exports/{name}?signature=`: 404 for an invalid link or another tenant's link, 403 for an expired link."""
    is_head = scope["method"] == "HEAD"
    try:
        file = await _opened(scope)
    except Refused as refusal:
        await answer(send, refusal, head_only=is_head)
        return
    headers = [
        # The file itself is gzip. With `Content-Encoding: gzip`, the client would decompress it.
        (b"content-type", b"application/gzip"),
        (b"content-length", str(file.size).encode()),
        (b"content-disposition", f'attachment; filename="{file.name}"'.encode()),
        (b"cache-control", b"private, no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if not is_head:
        await _send_pieces(file, send)
    else:
        await send({"type": "http.response.body", "body": b""})


async def _opened(scope: Scope) -> ExportedFile:
    match: HostMatch = scope["host_match"]
    if scope["method"] not in ("GET", "HEAD"):
        raise Refused(405, "This address supports only GET.", headers=[(b"allow", b"GET, HEAD")])
    name = scope["path"].rpartition("/")[2]
    signature = parse_qs(scope["query_string"].decode("latin-1")).get("signature", [""])[0]
    try:
        return await executor.run(partial(open_link, tenant_id=match.tenant_id, name=name, signature=signature))
    except LinkExpired as error:
        raise Refused(403, str(error)) from error
    except NotFound as error:
        raise Refused(404, str(error)) from error
    except (DatabaseError, OSError) as error:
        raise unavailable("The service cannot answer right now. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS) from error


async def _send_pieces(file: ExportedFile, send: Send) -> None:
    """Send one piece after the other. If a client accepts no piece for too long, its connection is closed before the file is complete."""
    for number in range(file.piece_count):
        piece = await executor.run(partial(read_piece, file, number))
        async with asyncio.timeout(_WRITE_SECONDS):
            await send({"type": "http.response.body", "body": piece, "more_body": number + 1 < file.piece_count})
