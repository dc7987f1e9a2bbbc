"""Generates the load: persistent connections in one event loop. After each response, a connection sends its next raw HTTP/1.1 request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks.auth.accounts import Accounts

# A function that returns the next request. The argument is the body of the last response, or None for the first request.
NextRequest = Callable[[bytes | None], bytes]
_WARM_SECONDS = 1.0


@dataclass(frozen=True)
class Measured:
    """The result of a run: requests per second, and milliseconds of processor time per request for each group of processes (`Accounts`)."""

    rate: float
    processor: dict[str, float]


def post(host: str, path: str, form: dict[str, str], *, proof: str = "") -> bytes:
    """Return a request with a form body, and with the given DPoP proof, if any."""
    body = urlencode(form).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    head += f"DPoP: {proof}\r\n" if proof else ""
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(host: str, path: str, bearer: str) -> bytes:
    """Return a request with a token."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n\r\n".encode()


async def measured(port: int, connections: list[NextRequest], *, seconds: float, accounts: Accounts) -> Measured:
    """Send requests on all connections, and measure them after a second of warm-up. Return their rate and their cost.

    Raises `RuntimeError` for a response with another status than 200.
    """
    await asyncio.gather(*(_ask(port, following, time.monotonic() + _WARM_SECONDS) for following in connections))
    before, begun = accounts.taken(), time.monotonic()
    counts = await asyncio.gather(*(_ask(port, following, begun + seconds) for following in connections))
    spent, count = time.monotonic() - begun, sum(counts)
    return Measured(count / spent, {name: value / count * 1e3 for name, value in accounts.since(before).items()})


async def once(port: int, request: bytes) -> bytes:
    """Send one request on a new connection and return the body of its response."""
    return (await told(port, request))[1]


async def told(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Send one request and return head and body of the response, which may have any status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await _whole(reader)
    writer.close()
    return answer


async def _ask(port: int, following: NextRequest, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count, body = 0, None
    while time.monotonic() < until:
        writer.write(following(body))
        body = await _answered(reader)
        count += 1
    writer.close()
    # Also pass on the last response: `following` may store a value of this response, such as a rotated token, for the next connection.
    following(body)
    return count


async def _answered(reader: asyncio.StreamReader) -> bytes:
    head, body = await _whole(reader)
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"{head!r} {body[:500]!r}")
    return body


async def _whole(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head, await reader.readexactly(length)
