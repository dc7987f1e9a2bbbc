"""The load: kept connections that ask again as soon as they are answered, one event loop, raw HTTP/1.1."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlencode

# Given the body of the last answer, or None at first, return the next request.
NextRequest = Callable[[bytes | None], bytes]


def post(host: str, path: str, form: dict[str, str]) -> bytes:
    """Return a request with a form as its body."""
    body = urlencode(form).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(host: str, path: str, bearer: str) -> bytes:
    """Return a request that shows a token."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n\r\n".encode()


async def rate(port: int, connections: list[NextRequest], *, seconds: float) -> float:
    """Return how many requests a second were answered with 200, over all connections, after a second of warming up."""
    await asyncio.gather(*(_ask(port, following, time.monotonic() + 1.0) for following in connections))
    counts = await asyncio.gather(*(_ask(port, following, time.monotonic() + seconds) for following in connections))
    return sum(counts) / seconds


async def once(port: int, request: bytes) -> bytes:
    """Send one request on a connection of its own and return the body of its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    body = await _answered(reader)
    writer.close()
    return body


async def _ask(port: int, following: NextRequest, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count, body = 0, None
    while time.monotonic() < until:
        writer.write(following(body))
        body = await _answered(reader)
        count += 1
    writer.close()
    # The next connection goes on with what the last answer said.
    following(body)
    return count


async def _answered(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    body = await reader.readexactly(length)
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"{head!r} {body[:500]!r}")
    return body
