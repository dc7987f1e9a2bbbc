"""The connection behind `send`, where ASGI has no word for what a long answer needs: waiting for a slow reader, and
dropping one that has stopped. uvicorn hands out a `Wire`; Daphne takes everything at once unless asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, Protocol

from events.stream.refusals import Header
from events.stream.writer import Send

# The name of the extension among those of a scope; `config.server.uvicorn_insides` offers it.
_STREAM = "identity.stream"


class Wire(Protocol):
    """A transport that a server leaves to the application for the rest of one answer."""

    def watch(self, gone: Callable[[], None]) -> None:
        """Have `gone` called when the client has left."""

    def write(self, body: bytes, chunk: bytes) -> bool:
        """Write one piece, given bare and as a chunk; returns False where the reader has no room or has left."""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write a piece as an ASGI message says it, when the reader has room."""

    def abort(self) -> None:
        """Drop the connection with everything still buffered for it."""


def taking_over(scope: MutableMapping[str, Any]) -> Callable[[list[Header]], Wire] | None:
    """Return what writes the head of a 200 answer and hands out its transport; None on a server that does not do this."""
    offered: Callable[[list[Header]], Wire] | None = scope.get("extensions", {}).get(_STREAM)
    return offered


class _TwistedRequest(Protocol):
    """What Daphne's request inherits from Twisted, as far as it is needed here."""

    channel: Any

    def registerProducer(self, producer: object, streaming: bool) -> None: ...  # noqa: FBT001, N802  (Twisted's own)

    def unregisterProducer(self) -> None: ...  # noqa: N802  (Twisted's own)


class _Pacer:
    """Hears from Twisted when the transport's buffer is full and when it has room again."""

    def __init__(self) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()

    def pauseProducing(self) -> None:  # noqa: N802  (Twisted's own)
        self.has_room.clear()

    def resumeProducing(self) -> None:  # noqa: N802  (Twisted's own)
        self.has_room.set()

    stopProducing = resumeProducing  # noqa: N815  (Twisted's own)


def paced(send: Send) -> Send:
    """Return a `send` that waits while the reader is behind: the same one where the server waits by itself."""
    request = _twisted_request(send)
    if request is None or request.channel is None:
        return send
    pacer = _Pacer()
    request.registerProducer(pacer, True)  # noqa: FBT003  (streaming, in Twisted's order)

    async def send_when_there_is_room(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            # Twisted refuses to finish a request whose producer is still registered; one without a channel has gone.
            if request.channel is not None:
                request.unregisterProducer()
        else:
            await pacer.has_room.wait()
        await send(message)

    return send_when_there_is_room


def abort_connection(send: Callable[..., Any]) -> None:
    """Drop the connection with everything still buffered for it, where this server lets us: Daphne's `send` is bound to its request."""
    transport = getattr(getattr(_twisted_request(send), "channel", None), "transport", None)
    if transport is not None:
        transport.abortConnection()


def _twisted_request(send: Callable[..., Any]) -> _TwistedRequest | None:
    bound = send.args[0] if isinstance(send, partial) and send.args else None
    return bound if hasattr(bound, "registerProducer") and hasattr(bound, "channel") else None
