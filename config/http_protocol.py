"""The HTTP protocol of the web server for a public port: heads of requests are bounded.

Run as `uvicorn --http config.http_protocol:HttpProtocol`. The rules of a request's head are those that a proxy in front has
(RFC 6585, 5; RFC 9110, 15.5.9). What they need of uvicorn's insides stands in `config.server.uvicorn_insides`.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from config.server.http_flow import limit_reads
from config.server.uvicorn_insides import UvicornProtocol

# Headers, cookies and a bearer token fit many times over.
HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
# What unfinished heads of all connections may take in one process. An ordinary head comes in one read and takes none of it; above this,
# a head that has come to more than `SMALL_HEAD_BYTES` without an end is refused.
ALL_HEADS_BYTES = 16 * 1024 * 1024
SMALL_HEAD_BYTES = 4 * 1024
# As many as most servers take; each costs more than its bytes.
MOST_HEADERS = 100
# What an answer that nobody reads may hold; over TLS it would be half a megabyte.
_BUFFER_BYTES = 64 * 1024
_REFUSALS = {
    400: b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class _HeadTooLarge(Exception):
    """The head has too many lines or bytes; ends the parser."""


class HttpProtocol(UvicornProtocol):
    """One connection."""

    _head_timer: asyncio.TimerHandle | None = None
    # Of a head, or of what follows a body: read by the parser without anything having come of it.
    _pending_bytes = 0
    # What of it is counted in the sum over all connections of this process.
    _parked_bytes = 0
    all_parked_bytes: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin with a deadline for the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(_BUFFER_BYTES)
        limit_reads(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever stands on this connection."""
        self.end_head()
        self._pending_bytes = 0
        self._park()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, as long as the head is not too long."""
        if self.wire is not None:
            self.wire.overhear(len(data))
            return
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._parked_bytes != self._pending_bytes:
            self._park()
        is_too_much = HttpProtocol.all_parked_bytes > ALL_HEADS_BYTES and self._pending_bytes > SMALL_HEAD_BYTES
        if self._pending_bytes > HEAD_BYTES or is_too_much:
            self._refuse(431)
        elif self._head_timer is None and not self.is_answering:
            # An empty line, or more of a body that is read no more: uvicorn has stopped its clock for it.
            self.wait_idly()

    def on_message_begin(self) -> None:
        """Give each further head its deadline."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Hand the request to the application, unless its head is too long."""
        self.end_head()
        self._pending_bytes = 0
        # A head may come in one read that is longer than what may be pending.
        lines, size = self.head_size
        if lines > MOST_HEADERS or size > HEAD_BYTES:
            self._refuse(431)
            raise _HeadTooLarge
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Read on in a body: its size is for the application to judge."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._pending_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, but never in the middle of an answer."""
        self._refuse(400)

    def end_head(self) -> bool:
        """Wait for a head no longer; tell whether one had begun."""
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _park(self) -> None:
        """Count what this connection holds of an unfinished head in the sum of the process."""
        HttpProtocol.all_parked_bytes += self._pending_bytes - self._parked_bytes
        self._parked_bytes = self._pending_bytes

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_overdue)

    def _head_is_overdue(self) -> None:
        if self.is_answering:
            # The next request waits for its turn anyway.
            self._await_head()
        elif self._pending_bytes:
            self._refuse(408)
        else:
            self.end_head()
            self.transport.close()

    def _refuse(self, status: int) -> None:
        self.end_head()
        self.refuse_with(_REFUSALS[status])
