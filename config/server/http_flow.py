"""Backpressure of one connection, and the end of a connection whose client stopped reading."""

from __future__ import annotations

import asyncio

# The kernel accepts more bytes only after it has sent a large part of its own buffer, which may be megabytes. On a slow line this takes
# minutes.
STALLED_SECONDS = 300.0
# With asyncio's default of 256 KiB per read, a thousand clients could fill 256 MiB in one pass of the event loop, before any byte is
# counted.
_READ_BYTES = 16 * 1024


def limit_reads(transport: asyncio.Transport) -> None:
    """Limit the bytes of one read of an asyncio transport; uvloop needs no limit, because it reads into its own buffer."""
    if hasattr(transport, "max_size"):
        transport.max_size = _READ_BYTES


class Flow:
    """Flow control that allocates nothing until a writer waits, with the members that uvicorn uses."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self.read_paused = False
        self.write_paused = False
        self._room: asyncio.Event | None = None
        self._watch: asyncio.TimerHandle | None = None

    def pause_reading(self) -> None:
        """Pause reading the request."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    async def drain(self) -> None:
        """Wait until the transport accepts more."""
        if self.write_paused:
            self._room = self._room or asyncio.Event()
            await self._room.wait()

    def pause_writing(self) -> None:
        """Make writers wait."""
        self.write_paused = True
        self.expect_reading()

    def resume_writing(self) -> None:
        """Let writers continue."""
        self.write_paused = False
        self.forget()
        if self._room is not None:
            self._room.set()
            self._room = None

    def expect_reading(self) -> None:
        """Drop the connection if no part of the write buffer is sent in time: a normal close would wait for the client for ever."""
        self.forget()
        if size := self._transport.get_write_buffer_size():
            self._watch = self._loop.call_later(STALLED_SECONDS, self._look, size)

    def forget(self) -> None:
        """Stop watching the client."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self, size: int) -> None:
        if self._transport.get_write_buffer_size() < size:
            self.expect_reading()
        else:
            self._transport.abort()
