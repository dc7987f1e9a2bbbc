"""uvicorn's HTTP protocol for a port that anybody may reach: heads are bounded, and a long answer stands on its own.

Run as `uvicorn --http config.http_protocol:HttpProtocol`. The rules of a request's head are those that a proxy in front has
(RFC 6585, 5; RFC 9110, 15.5.9). An answer that lasts for an hour is taken over by the application: `identity.stream` among the
extensions of its scope hands out the transport, and lets go of everything that only a request needs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from functools import partial
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from config.server.http_flow import Flow, limit_reads

STREAM = "identity.stream"
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
# Who is being streamed to has nothing to say; so much is overlooked.
_OVERHEARD_BYTES = 64 * 1024
_REFUSALS = {
    400: b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class _HeadTooLarge(Exception):
    """The head has too many lines or bytes; ends the parser."""


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
        else:
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
        # Who watches often holds this wire: let go of, nothing waits for a collection.
        gone, self._gone = self._gone, None
        if gone is not None:
            gone()


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    _flow: Flow
    _wire: Wire | None = None
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
        self.flow = self._flow = Flow(transport, self.loop)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever stands on this connection."""
        self._forget_head()
        self._pending_bytes = 0
        self._park()
        super().connection_lost(exc)
        # uvicorn leaves it when a connection was reset, and with it everything here for as long.
        self._unset_keepalive_if_required()
        if self._wire is not None:
            self._wire.lose()
        self._let_go()

    def data_received(self, data: bytes) -> None:
        """Read on, as long as the head is not too long."""
        if self._wire is not None:
            self._wire.overhear(len(data))
            return
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._parked_bytes != self._pending_bytes:
            self._park()
        is_too_much = HttpProtocol.all_parked_bytes > ALL_HEADS_BYTES and self._pending_bytes > SMALL_HEAD_BYTES
        if self._pending_bytes > HEAD_BYTES or is_too_much:
            self._refuse(431)
        elif self._head_timer is None and not self._is_answering():
            # An empty line, or more of a body that is read no more: uvicorn has stopped its clock for it.
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        """Give each further head its deadline."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Hand the request to the application, with a way to take its answer over."""
        self._forget_head()
        self._pending_bytes = 0
        # A head may come in one read that is longer than what may be pending.
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if len(self.headers) > MOST_HEADERS or size > HEAD_BYTES:
            self._refuse(431)
            raise _HeadTooLarge
        # Who asks on reads on, unless an answer waits for room.
        if not self._flow.write_paused:
            self._flow.forget()
        super().on_headers_complete()
        # The names of extensions are open, uvicorn's types of what stands under them are not.
        extensions: dict[str, Any] = {STREAM: partial(self._take_over, self.cycle)}
        self.scope["extensions"] = extensions
        # Lines behind a body are no headers (RFC 9110, 6.5.1): the application would believe them past a proxy that checks headers.
        self.headers = deque(maxlen=0)  # type: ignore[assignment]
        if self.scope["http_version"] != "1.1":
            self.cycle.send = _bare(self.cycle)  # type: ignore[method-assign, assignment]

    def on_body(self, body: bytes) -> None:
        """Read on in a body: its size is for the application to judge."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._pending_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on to the next request, and have the rest of this answer read."""
        super().on_response_complete()
        self._flow.expect_reading()
        if not self._is_answering():
            # A refused body may be here in part, and the connection stays until its client closes it.
            self._drop_body()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, but never in the middle of an answer."""
        self._refuse(400)

    def answered(self, *, keeps_alive: bool) -> None:
        """Go back to requests after an answer that was taken over, or close."""
        if not keeps_alive:
            self.transport.close()
            self._flow.expect_reading()
            return
        self._wire = None
        self.parser = httptools.HttpRequestParser(self)
        # As uvicorn begins with.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.pipeline = deque()
        self.on_response_complete()

    def _take_over(self, cycle: RequestResponseCycle, headers: Sequence[tuple[bytes, bytes]]) -> Wire:
        """Write the head of a 200 answer with these headers and return what writes the rest of it."""
        is_chunked = cycle.scope["http_version"] == "1.1"
        # Of a further request, begun or whole, nothing is kept.
        is_last = cycle.more_body or self.pipeline or self._head_timer is not None
        keeps_alive = is_chunked and cycle.keep_alive and not is_last
        framing = [(b"transfer-encoding", b"chunked")] if is_chunked else []
        framing += [] if keeps_alive else [(b"connection", b"close")]
        lines = [name + b": " + value for name, value in (*self.server_state.default_headers, *headers, *framing)]
        # For uvicorn this request is answered, and its application may return.
        cycle.response_started = cycle.response_complete = True
        wire = Wire(self, is_chunked=is_chunked, keeps_alive=keeps_alive)
        if self.transport.is_closing():
            # It was left while the application made up its mind; nobody would tell the wire any more.
            wire.lose()
            return wire
        self.transport.write(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""]))
        self._wire = wire
        self._forget_head()
        # Reading may wait for a turn that never comes, and who does not read hears of no end.
        self.flow.resume_reading()
        self.parser = self.headers = self.scope = self.cycle = None  # type: ignore[assignment]
        self.pipeline = deque(maxlen=0)
        return wire

    def _let_go(self) -> None:
        """Break circles of references: they would keep what was read until the next full collection, an hour away."""
        self._drop_body()
        if self.scope and not self._is_answering():  # type: ignore[redundant-expr]  # None once it was taken over
            # An application that is still at work may take over, and is told that the client has left.
            self.scope.get("extensions", {}).clear()
        self.pipeline.clear()
        self.parser = None  # type: ignore[assignment]  # the connection receives no more data

    def _drop_body(self) -> None:
        if self.cycle:  # type: ignore[truthy-bool]  # None once it was taken over
            self.cycle.body = bytearray()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _park(self) -> None:
        """Count what this connection holds of an unfinished head in the sum of the process."""
        HttpProtocol.all_parked_bytes += self._pending_bytes - self._parked_bytes
        self._parked_bytes = self._pending_bytes

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_overdue)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_overdue(self) -> None:
        if self._is_answering():
            # The next request waits for its turn anyway.
            self._await_head()
        elif self._pending_bytes:
            self._refuse(408)
        else:
            self._forget_head()
            self.transport.close()

    def _refuse(self, status: int) -> None:
        self._forget_head()
        if self.transport.is_closing():
            return
        if self._may_refuse():
            self.transport.write(_REFUSALS[status])
        self.transport.close()

    def _may_refuse(self) -> bool:
        """Tell whether a refusal would be read as what it is, and neither as part of another request's answer nor as that answer."""
        if not self._is_answering():
            return True
        is_of_this_body = self.cycle.more_body and not self.cycle.response_started and not self.pipeline
        # Its application has nothing to add.
        self.cycle.disconnected = self.cycle.disconnected or is_of_this_body
        return is_of_this_body


def _bare(cycle: RequestResponseCycle) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Return a `send` for versions that know no chunks: what tells no length ends with its connection (RFC 9112, 6.3)."""
    send = cycle.send
    is_bare = False

    async def send_bare(message: Any) -> None:
        nonlocal is_bare
        if message["type"] == "http.response.start":
            is_bare = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if is_bare:
                # uvicorn chooses chunks where nothing was chosen yet.
                cycle.chunked_encoding = cycle.keep_alive = False
        elif is_bare:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    return send_bare
