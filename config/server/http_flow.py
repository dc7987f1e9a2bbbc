"""Backpressure of one connection, and the end of one whose reader has stopped."""

from __future__ import annotations

import asyncio

# The kernel asks for more only when a good part of its own buffer, which may be megabytes, has gone: minutes on a slow line.
STALLED_SECONDS = 300.0
# At asyncio's quarter of a megabyte a read, a thousand senders fill as many in one turn, before the first of them is counted.
_READ_BYTES = 16 * 1024


def limit_reads(transport: asyncio.Transport) -> None:
    """Bound one read of a transport of asyncio; uvloop reads into a buffer of its own."""
    if hasattr(transport, "max_size"):
        transport.max_size = _READ_BYTES


class Flow:
    """Flow control that costs nothing until a writer waits, with the members that uvicorn asks of its own."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self.read_paused = False
        self.write_paused = False
        self._room: asyncio.Event | None = None
        self._watch: asyncio.TimerHandle | None = None

    def pause_reading(self) -> None:
        """Read no more of the request."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    async def drain(self) -> None:
        """Wait until the transport takes more."""
        if self.write_paused:
            self._room = self._room or asyncio.Event()
            await self._room.wait()

    def pause_writing(self) -> None:
        """Have writers wait."""
        self.write_paused = True
        self.expect_reading()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self.write_paused = False
        self.forget()
        if self._room is not None:
            self._room.set()
            self._room = None

    def expect_reading(self) -> None:
        """Drop the connection when nothing is taken of what is buffered: closing it would wait for the reader for ever."""
        self.forget()
        if size := self._transport.get_write_buffer_size():
            self._watch = self._loop.call_later(STALLED_SECONDS, self._look, size)

    def forget(self) -> None:
        """Expect nothing more of the reader."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self, size: int) -> None:
        if self._transport.get_write_buffer_size() < size:
            self.expect_reading()
        else:
            self._transport.abort()
