"""Fast path: the service writes streams and complete responses directly to the transport of the connection.

No other module uses private parts of uvicorn.

On the plain path, responses are sent with ASGI's `send` (`events.stream.peer`). All responses of Daphne take this path, and so do uvicorn's
responses of other kinds. A `Wire` keeps no request, no parser and no task. An idle stream takes 10.1 KiB with a `Wire` and 24.6 KiB on
Granian, which has no `Wire`. A frame to 1,000 streams costs 1.2 times as much as with nchan (`make bench-stream`, docs/performance.md). On
the fast path, a complete response needs only one write. It also needs two coroutines fewer than on the plain path.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from functools import partial
from typing import Any

import httptools
import uvicorn

from authapi.edge.whole_messages import ANSWER, BODY
from config.server.http_flow import Flow

STREAM = "identity.stream"
KNOWN_VERSION = "0.54"
# Bytes that a client may send during a stream before its connection is closed.
_OVERHEARD_BYTES = 64 * 1024


class UnknownUvicorn(RuntimeError):
    """The installed version of uvicorn is not the version whose private parts this module overrides."""


def require_known(version: str) -> None:
    """Raise `UnknownUvicorn` for a version whose private parts were not examined."""
    if not version.startswith(f"{KNOWN_VERSION}."):
        raise UnknownUvicorn(
            f"uvicorn {version} is installed, and config/server/uvicorn_insides.py uses private parts of {KNOWN_VERSION}. Install the "
            "version of requirements/base.lock, or compare the module with the new version, run tests/config/server/test_http_protocol.py, "
            "and change KNOWN_VERSION."
        )


require_known(uvicorn.__version__)

# Imported after the check, because another version of uvicorn may have no such module.
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle  # noqa: E402


class Wire:
    """The transport of one response that the application has taken over, and the framing of the response."""

    __slots__ = ("_flow", "_gone", "_is_chunked", "_is_lost", "_keeps_alive", "_overheard", "_protocol", "_transport")

    def __init__(self, protocol: UvicornProtocol, *, is_chunked: bool, keeps_alive: bool) -> None:
        self._protocol = protocol
        self._flow = protocol.flow
        self._is_chunked = is_chunked
        self._keeps_alive = keeps_alive
        self._gone: Callable[[], None] | None = None
        self._is_lost = False
        self._overheard = 0
        self._transport = protocol.transport

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone` when the client disconnects; if the client has already disconnected, call `gone` at once."""
        if self._is_lost:
            gone()
        else:
            self._gone = gone

    def write(self, body: bytes, chunk: bytes) -> bool:
        """Pass a piece of the response to the transport: `body`, or `chunk`, the same piece with chunk framing (RFC 9112, 7.1).

        Returns False, with nothing written, while the client reads too slowly, and after it has disconnected.
        """
        if self._flow.write_paused or self._is_lost:
            return False
        self._transport.write(chunk if self._is_chunked else body)
        return True

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write the piece of the response in an ASGI message, as soon as the buffer has room. Raises `ConnectionResetError`."""
        if self._flow.write_paused:
            await self._flow.drain()
        if self._is_lost:
            raise ConnectionResetError
        if body := message["body"]:
            self._transport.write(b"%x\r\n%b\r\n" % (len(body), body) if self._is_chunked else body)
        if not message["more_body"]:
            if self._is_chunked:
                self._transport.write(b"0\r\n\r\n")
            self._protocol.answered(keeps_alive=self._keeps_alive)

    def abort(self) -> None:
        """Drop the connection and its buffered bytes."""
        self._transport.abort()

    def overhear(self, size: int) -> None:
        """Count unexpected bytes from the client. The connection serves no further request."""
        self._keeps_alive = False
        self._overheard += size
        if self._overheard > _OVERHEARD_BYTES:
            self._transport.abort()

    def lose(self) -> None:
        """Record that the connection has ended, and call the function given to `watch`."""
        self._is_lost = True
        # `gone` often refers to this wire. Break this reference cycle, so that no garbage collection is needed.
        gone, self._gone = self._gone, None
        if gone is not None:
            gone()


class UvicornProtocol(HttpToolsProtocol):
    """One connection. It gives names to the parts of uvicorn that the rules for request heads need."""

    flow: Flow  # type: ignore[assignment]  # our class in place of uvicorn's
    wire: Wire | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.flow = Flow(transport, self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # After a connection reset, uvicorn keeps the timer of the idle connection, and the timer keeps all objects of the connection.
        self._unset_keepalive_if_required()
        if self.wire is not None:
            self.wire.lose()
        self._let_go()

    def on_headers_complete(self) -> None:
        """Pass the request to the application, with extensions by which the application can write its response itself."""
        # A new request proves that the client reads, unless the write buffer is full.
        if not self.flow.write_paused:
            self.flow.forget()
        super().on_headers_complete()
        # ASGI allows extensions of any type; uvicorn declares a narrower type.
        extensions: dict[str, Any] = {
            STREAM: partial(self._take_over, self.cycle),
            BODY: partial(_whole_body, self.cycle),
            ANSWER: partial(self._write_whole, self.cycle),
        }
        self.scope["extensions"] = extensions
        # Drop the trailer lines after a body (RFC 9110, 6.5.1). uvicorn would add them to the headers, and the application would trust
        # them, although a proxy checks only headers.
        self.headers = deque(maxlen=0)  # type: ignore[assignment]
        if self.scope["http_version"] != "1.1":
            self.cycle.send = _bare(self.cycle)  # type: ignore[method-assign, assignment]

    def on_response_complete(self) -> None:
        """Continue with the next request.

        From now on, the client must read the response in time. A request body that the application has not read is freed.
        """
        super().on_response_complete()
        self.flow.expect_reading()
        if not self.is_answering:
            # Free the received part of a refused request body now: the connection stays open until its client closes it.
            self._drop_body()

    def answered(self, *, keeps_alive: bool) -> None:
        """Let uvicorn read requests again after the application has written its response. Without `keeps_alive`, close the connection."""
        if not keeps_alive:
            self.transport.close()
            self.flow.expect_reading()
            return
        self.wire = None
        self.parser = httptools.HttpRequestParser(self)
        # uvicorn sets this for the parser of a new connection, too: data after a request with `Connection: close` is no error.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.pipeline = deque()
        self.on_response_complete()

    def end_head(self) -> bool:
        """Stop waiting for the head of a request; tell whether a part of a head has arrived."""
        raise NotImplementedError

    @property
    def head_size(self) -> tuple[int, int]:
        """The number of lines, and the number of bytes, of the request head that have arrived."""
        return len(self.headers), len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    @property
    def is_answering(self) -> bool:
        """Whether a request waits for the rest of its response."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def wait_idly(self) -> None:
        """Set uvicorn's timer of an idle connection."""
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def refuse_with(self, answer: bytes) -> None:
        """Close the connection, with a response if the client can tell which request it answers."""
        if self.transport.is_closing():
            return
        if self._may_refuse():
            self.transport.write(answer)
        self.transport.close()

    def _may_refuse(self) -> bool:
        """Tell whether the client would read a refusal as the response to its request, not as part of another response."""
        if not self.is_answering:
            return True
        is_of_this_body = self.cycle.more_body and not self.cycle.response_started and not self.pipeline
        # The application must not write a second response.
        self.cycle.disconnected = self.cycle.disconnected or is_of_this_body
        return is_of_this_body

    def _take_over(self, cycle: RequestResponseCycle, headers: Sequence[tuple[bytes, bytes]]) -> Wire:
        """Write the head of a 200 response with these headers, and return the `Wire` that writes its body."""
        is_chunked = cycle.scope["http_version"] == "1.1"
        # Discards pipelined requests.
        is_last = self.end_head() or cycle.more_body or self.pipeline
        keeps_alive = is_chunked and cycle.keep_alive and not is_last
        framing = [(b"transfer-encoding", b"chunked")] if is_chunked else []
        framing += [] if keeps_alive else [(b"connection", b"close")]
        lines = [name + b": " + value for name, value in (*self.server_state.default_headers, *headers, *framing)]
        # For uvicorn this request is complete, and its application may return.
        cycle.response_started = cycle.response_complete = True
        wire = Wire(self, is_chunked=is_chunked, keeps_alive=keeps_alive)
        if self.transport.is_closing():
            # The client disconnected before the application took over. Without a connection, reading must not be resumed.
            wire.lose()
            return wire
        self.transport.write(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""]))
        self.wire = wire
        # A paused transport does not report that the client disconnected, so resume reading.
        self.flow.resume_reading()
        self.parser = self.headers = self.scope = self.cycle = None  # type: ignore[assignment]
        self.pipeline = deque(maxlen=0)
        return wire

    def _write_whole(self, cycle: RequestResponseCycle, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Write a complete response as uvicorn would, in one write.

        Returns False and writes nothing if uvicorn must write the response: for HTTP/1.0, for HEAD, on a connection that is to be closed,
        and while the client reads too slowly.
        """
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive or self.flow.write_paused:
            return False
        if cycle.scope["http_version"] != "1.1" or cycle.scope["method"] == "HEAD":
            return False
        lines = [b"%b: %b" % pair for pair in (*self.server_state.default_headers, *headers)]
        head = b"\r\n".join([STATUS_LINE[status][:-2], *lines, b"", b""])
        if head.count(b"\r") != len(lines) + 2 or head.count(b"\n") != len(lines) + 2 or b"\x00" in head:
            # A header is invalid. Return False, so that uvicorn writes the response on the plain path and reports the error.
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        self.transport.write(head + body)
        cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _let_go(self) -> None:
        """Break reference cycles, which would keep the request in memory until the next full garbage collection, an hour later."""
        self._drop_body()
        if self.scope and not self.is_answering:  # type: ignore[redundant-expr]  # None once it was taken over
            # An application that still runs needs the extensions: they report that the client has disconnected.
            self.scope.get("extensions", {}).clear()
        self.pipeline.clear()
        self.parser = None  # type: ignore[assignment]  # the connection receives no more data

    def _drop_body(self) -> None:
        if self.cycle:  # type: ignore[truthy-bool]  # None once it was taken over
            self.cycle.body = bytearray()


def _whole_body(cycle: RequestResponseCycle) -> bytes | None:
    """Return the body that one `receive` would return; None if the body has not arrived completely."""
    if cycle.more_body or cycle.disconnected or cycle.response_complete or cycle.waiting_for_100_continue:
        return None
    body = bytes(cycle.body)
    cycle.body = bytearray()
    cycle.message_event.clear()
    return body


def _bare(cycle: RequestResponseCycle) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Return a `send` for HTTP versions without chunks: a response without a length ends when its connection closes (RFC 9112, 6.3)."""
    send = cycle.send
    is_bare = False

    async def send_bare(message: Any) -> None:
        nonlocal is_bare
        if message["type"] == "http.response.start":
            is_bare = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if is_bare:
                # Otherwise uvicorn would send the body in chunks.
                cycle.chunked_encoding = cycle.keep_alive = False
        elif is_bare:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    return send_bare
