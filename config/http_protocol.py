"""The HTTP protocol of the web server for a public port, with limits on the heads of requests.

Run as `uvicorn --http config.http_protocol:HttpProtocol`. The limits are the same as in usual reverse proxies (RFC 6585, 5; RFC 9110,
15.5.9). The code that uses internals of uvicorn is in `config.server.uvicorn_insides`.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from config.server.http_flow import limit_reads
from config.server.uvicorn_insides import UvicornProtocol

# Maximum size of a head. Usual headers, cookies and a bearer token are many times smaller.
HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
# Maximum total size of the unfinished heads of all connections of one process. An ordinary head arrives in one read and does not count.
# Above this limit, an unfinished head with more than `SMALL_HEAD_BYTES` is refused.
ALL_HEADS_BYTES = 16 * 1024 * 1024
SMALL_HEAD_BYTES = 4 * 1024
# Maximum number of headers, as in most servers. A limit on bytes is not enough, because each header costs processor time and memory.
MOST_HEADERS = 100
# Maximum number of buffered bytes of a response that the client does not read. Without this limit, the server would buffer up to half a
# megabyte for each TLS connection.
_BUFFER_BYTES = 64 * 1024
_REFUSALS = {
    400: b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class _HeadTooLarge(Exception):
    """The head has too many lines or bytes. This error stops the parser."""


class HttpProtocol(UvicornProtocol):
    """One connection."""

    _head_timer: asyncio.TimerHandle | None = None
    # Number of bytes that the parser has read without a result: bytes of an unfinished head, or bytes after a complete body.
    _pending_bytes = 0
    # How many of these bytes `all_parked_bytes` includes.
    _parked_bytes = 0
    all_parked_bytes: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the deadline of the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(_BUFFER_BYTES)
        limit_reads(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the timer and the counted bytes of this connection."""
        self.end_head()
        self._pending_bytes = 0
        self._park()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse more bytes, unless the head is too long."""
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
            # The bytes were an empty line or the rest of an unread body. uvicorn has stopped its own timer for idle connections, so start
            # one.
            self.wait_idly()

    def on_message_begin(self) -> None:
        """Start the deadline of each further head."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Pass the request to the application, unless its head is too long."""
        self.end_head()
        self._pending_bytes = 0
        # A head that arrives in one read can be longer than the limit on pending bytes.
        lines, size = self.head_size
        if lines > MOST_HEADERS or size > HEAD_BYTES:
            self._refuse(431)
            raise _HeadTooLarge
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Parse more of a body. The application limits its size."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._pending_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not HTTP, but never during a response."""
        self._refuse(400)

    def end_head(self) -> bool:
        """Cancel the deadline of the head that is expected; tell whether there was such a deadline."""
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _park(self) -> None:
        """Update the process-wide sum with the bytes of this connection's unfinished head."""
        HttpProtocol.all_parked_bytes += self._pending_bytes - self._parked_bytes
        self._parked_bytes = self._pending_bytes

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_overdue)

    def _head_is_overdue(self) -> None:
        if self.is_answering:
            # The head belongs to the next request, which waits until this response ends. So extend the deadline of the head.
            self._await_head()
        elif self._pending_bytes:
            self._refuse(408)
        else:
            self.end_head()
            self.transport.close()

    def _refuse(self, status: int) -> None:
        self.end_head()
        self.refuse_with(_REFUSALS[status])
