"""An ASGI application that sets the socket options, and returns the options that the kernel reports for its connection."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from events.stream.listeners import OPTIONS, watch_over_readers


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the options of the request's connection."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            watch_over_readers()
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    # A server without lifespan events sets the options at its first request.
    watch_over_readers()
    body = json.dumps(_options_of((scope["client"][0], int(scope["client"][1])))).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


def _options_of(peer: tuple[str, int]) -> list[int]:
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as found:
            if found.family == socket.AF_INET and found.getpeername() == peer:
                return [found.getsockopt(level, name) for level, name in OPTIONS]
    return []
