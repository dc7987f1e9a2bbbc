"""Files that are generated while they are sent, under WSGI and ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


def streamed_file(request: HttpRequest, pieces: Iterator[str], *, name: str, content_type: str) -> StreamingHttpResponse:
    """Return a response that sends `pieces` as a file of this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    content = _asynchronous(pieces) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(content, content_type=content_type, headers=headers)


async def _asynchronous(pieces: Iterator[str]) -> AsyncIterator[str]:
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)
