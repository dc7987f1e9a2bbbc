"""Access to the connection behind `send`. Long responses need two features that ASGI lacks: backpressure, and a way to drop a client
that stopped reading.

On uvicorn, a `Wire` provides both features; Daphne buffers without limit unless a producer is registered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, Protocol

from events.stream.refusals import Header
from events.stream.writer import Send

# The name of the extension in a scope; `config.server.uvicorn_insides` provides the extension.
_STREAM = "identity.stream"


class Wire(Protocol):
    """A transport that a server hands to the application for the rest of one response."""

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone` when the client has disconnected."""

    def write(self, body: bytes, chunk: bytes) -> bool:
        """Write one piece. The caller passes the piece in two forms: `body` has no chunk framing, and `chunk` has chunk framing.

        Return False if the buffer is full or the client has disconnected.
        """

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write the piece in an ASGI message as soon as the buffer has room."""

    def abort(self) -> None:
        """Drop the connection and its buffered bytes."""


def taking_over(scope: MutableMapping[str, Any]) -> Callable[[list[Header]], Wire] | None:
    """Return a function that writes the head of a 200 response and returns its transport. Return None if the server does not hand over its
    transport."""
    offered: Callable[[list[Header]], Wire] | None = scope.get("extensions", {}).get(_STREAM)
    return offered


class _TwistedRequest(Protocol):
    """The methods of Daphne's request that this module uses. The request inherits these methods from Twisted."""

    channel: Any

    def registerProducer(self, producer: object, streaming: bool) -> None: ...  # noqa: FBT001, N802  (Twisted's name)

    def unregisterProducer(self) -> None: ...  # noqa: N802  (Twisted's name)


class _Pacer:
    """A producer whose methods Twisted calls when the transport's buffer is full, and when the buffer has room again."""

    def __init__(self) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()

    def pauseProducing(self) -> None:  # noqa: N802  (Twisted's name)
        self.has_room.clear()

    def resumeProducing(self) -> None:  # noqa: N802  (Twisted's name)
        self.has_room.set()

    stopProducing = resumeProducing  # noqa: N815  (Twisted's name)


def paced(send: Send) -> Send:
    """Return a function like `send` that also waits while the client reads too slowly. Return `send` itself if the server's own `send`
    already waits."""
    request = _twisted_request(send)
    if request is None or request.channel is None:
        return send
    pacer = _Pacer()
    request.registerProducer(pacer, True)  # noqa: FBT003  (streaming, in Twisted's order)

    async def send_when_there_is_room(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            # Twisted refuses to finish a request whose producer is still registered. A request without a channel has lost its client.
            if request.channel is not None:
                request.unregisterProducer()
        else:
            await pacer.has_room.wait()
        await send(message)

    return send_when_there_is_room


def abort_connection(send: Callable[..., Any]) -> None:
    """Drop the connection and its buffered bytes. Works only on Daphne: there, `send` is bound to the request, and the request has the
    transport."""
    transport = getattr(getattr(_twisted_request(send), "channel", None), "transport", None)
    if transport is not None:
        transport.abortConnection()


def _twisted_request(send: Callable[..., Any]) -> _TwistedRequest | None:
    bound = send.args[0] if isinstance(send, partial) and send.args else None
    return bound if hasattr(bound, "registerProducer") and hasattr(bound, "channel") else None
