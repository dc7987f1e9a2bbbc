"""uvicorn's HTTP protocol for a port that anybody may reach: heads are bounded, and a long answer stands on its own.

Run as `uvicorn --http config.http_protocol:HttpProtocol`. The rules of a request's head are those that a proxy in front has
(RFC 6585, 5; RFC 9110, 15.5.9). An answer that lasts for an hour is taken over by the application: `identity.stream` among the
extensions of its scope hands out the transport, and lets go of everything that only a request needs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

STREAM = "identity.stream"
# Headers, cookies and a bearer token fit many times over; one read of the transport may come on top.
HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
# Who is being streamed to has nothing to say; so much is overlooked.
_OVERHEARD_BYTES = 64 * 1024
_REFUSALS = {
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class Flow(FlowControl):
    """Flow control that costs nothing until somebody waits."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._room: asyncio.Event | None = None

    async def drain(self) -> None:
        """Wait until the transport takes more."""
        if self.write_paused:
            self._room = self._room or asyncio.Event()
            await self._room.wait()

    def pause_writing(self) -> None:
        """Have writers wait."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Let writers go on."""
        self.write_paused = False
        if self._room is not None:
            self._room.set()
            self._room = None


class Wire:
    """The transport behind one answer that the application has taken over, and the framing that the answer needs."""

    __slots__ = ("_flow", "_gone", "_is_chunked", "_is_lost", "_keeps_alive", "_overheard", "_protocol", "transport")

    def __init__(self, protocol: HttpProtocol, *, is_chunked: bool, keeps_alive: bool) -> None:
        self._protocol = protocol
        self._flow = protocol.flow
        self._is_chunked = is_chunked
        self._keeps_alive = keeps_alive
        self._gone: Callable[[], None] | None = None
        self._is_lost = False
        self._overheard = 0
        self.transport = protocol.transport

    def watch(self, gone: Callable[[], None]) -> None:
        """Have `gone` called when the client has left, at once if it has."""
        if self._is_lost:
            gone()
        self._gone = gone

    def write(self, body: bytes, chunk: bytes) -> bool:
        """Hand a piece of the answer to the transport, given with and without the frame of a chunk (RFC 9112, 7.1).

        Returns False, with nothing written, while the reader is behind and when it has left.
        """
        if self._flow.write_paused or self._is_lost:
            return False
        self.transport.write(chunk if self._is_chunked else body)
        return True

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write a piece of the answer as an ASGI message says, when the reader has room. Raises `ConnectionResetError`."""
        if self._flow.write_paused:
            await self._flow.drain()
        if self._is_lost:
            raise ConnectionResetError
        if body := message["body"]:
            self.transport.write(b"%x\r\n%b\r\n" % (len(body), body) if self._is_chunked else body)
        if not message["more_body"]:
            if self._is_chunked:
                self.transport.write(b"0\r\n\r\n")
            self._protocol.answered(keeps_alive=self._keeps_alive)

    def overhear(self, size: int) -> None:
        """Note that the client has sent something nobody waits for: the connection serves no further request."""
        self._keeps_alive = False
        self._overheard += size
        if self._overheard > _OVERHEARD_BYTES:
            self.transport.abort()

    def lose(self) -> None:
        """Note that the connection has ended."""
        self._is_lost = True
        if self._gone is not None:
            self._gone()


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    _wire: Wire | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin with a deadline for the first head."""
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever stands on this connection."""
        self._forget_head()
        super().connection_lost(exc)
        if self._wire is not None:
            self._wire.lose()

    def data_received(self, data: bytes) -> None:
        """Read on, as long as the head is not too long."""
        if self._wire is not None:
            self._wire.overhear(len(data))
            return
        super().data_received(data)
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(431)

    def on_message_begin(self) -> None:
        """Give each further head its deadline."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Hand the request to the application, with a way to take its answer over."""
        self._forget_head()
        super().on_headers_complete()
        # The names of extensions are open, uvicorn's types of what stands under them are not.
        extensions: dict[str, Any] = {STREAM: partial(self._take_over, self.cycle)}
        self.scope["extensions"] = extensions

    def answered(self, *, keeps_alive: bool) -> None:
        """Go back to requests after an answer that was taken over, or close."""
        if not keeps_alive:
            self.transport.close()
            return
        self._wire = None
        self.parser = httptools.HttpRequestParser(self)
        self.pipeline = deque()
        self.on_response_complete()

    def _take_over(self, cycle: RequestResponseCycle, headers: Sequence[tuple[bytes, bytes]]) -> Wire:
        """Write the head of a 200 answer with these headers and return what writes the rest of it."""
        is_chunked = cycle.scope["http_version"] != "1.0"
        keeps_alive = is_chunked and cycle.keep_alive and not cycle.more_body and not self.pipeline
        framing = [(b"transfer-encoding", b"chunked")] if is_chunked else []
        framing += [] if keeps_alive else [(b"connection", b"close")]
        lines = [name + b": " + value for name, value in (*self.server_state.default_headers, *headers, *framing)]
        self.transport.write(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""]))
        # For uvicorn this request is answered, and its application may return.
        cycle.response_started = cycle.response_complete = True
        self._wire = Wire(self, is_chunked=is_chunked, keeps_alive=keeps_alive)
        self.parser = self.headers = self.scope = self.cycle = None  # type: ignore[assignment]
        self.pipeline = deque(maxlen=0)
        return self._wire

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_overdue)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_overdue(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            # The next request waits for its turn anyway.
            self._await_head()
        elif self._head_bytes:
            self._refuse(408)
        else:
            self._forget_head()
            self.transport.close()

    def _refuse(self, status: int) -> None:
        self._forget_head()
        if not self.transport.is_closing():
            self.transport.write(_REFUSALS[status])
            self.transport.close()
