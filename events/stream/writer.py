"""Writes to one connection: one send at a time, in order. A stuck send can be aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from events import metrics
from events.stream.measures import BLOCKED_SECONDS, measures
from events.stream.reading.sharing import WRITE_BYTES, Share

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# Writes a piece without waiting. The first argument is the piece, and the second argument is the same piece with chunk framing. Returns
# False if the transport is full.
PassOn = Callable[[bytes, bytes], bool]

# The cause of a broken connection, as one word.
GONE = "client"
SLOW = "slow"
OPERATOR = "operator"
SHUTDOWN = "shutdown"


class Broken(Exception):
    """The connection is closed or stuck; nothing more can be written to it."""


class Writer:
    """Writes for the task that created it. The writer calls `wake` when the connection breaks, so that the task notices this."""

    __slots__ = (
        "_awaits_send", "_loop", "_pass", "_send", "_task", "_wake", "broken_by", "bytes_written", "writing_since", "written_at"
    )  # fmt: skip

    def __init__(self, send: Send, wake: Callable[[], None], at_once: PassOn | None = None) -> None:
        self._send = send
        self._pass = at_once
        self._wake = wake
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._awaits_send = False
        self.broken_by: str | None = None
        # Times of the event loop; `writing_since` is 0 while nothing is being written.
        self.written_at = self._loop.time()
        self.writing_since = 0.0
        self.bytes_written = 0

    async def write(self, data: bytes) -> None:
        """Write all bytes, in pieces of bounded size. Raises `Broken`."""
        for start in range(0, len(data), WRITE_BYTES):
            await self.send_body(data[start : start + WRITE_BYTES], more=True)
        if data:
            self.written_at = self._loop.time()

    async def send_body(self, body: bytes, *, more: bool) -> None:
        """Write one piece; the last piece of the response has `more=False`. Raises `Broken`."""
        self.check()
        self.writing_since = self._loop.time()
        await self._sent(self._send({"type": "http.response.body", "body": body, "more_body": more}), len(body))

    def pass_on(self, share: Share, now: float) -> bool:
        """Write the bytes of `share` from outside the task; `now` is the time. Return False if the transport cannot accept them
        immediately."""
        if self._pass is None or not self._pass(share.body, share.chunk):
            return False
        self.written_at = now
        self.bytes_written += share.size
        measures.bytes += share.size
        return True

    def break_off(self, cause: str) -> None:
        """Write nothing more, and abort the stuck send. Keep the first cause, if this method is called several times."""
        if self.broken_by is not None:
            return
        self.broken_by = cause
        self._wake()
        if self._awaits_send and self._task is not None:
            self._task.cancel()

    def check(self) -> None:
        """Raise `Broken` when nothing more can be written."""
        if self.broken_by is not None:
            raise Broken

    async def _sent(self, sending: Awaitable[None], size: int) -> None:
        self._awaits_send = True
        try:
            await sending
            self._note_written(size)
        except asyncio.CancelledError:
            if self.broken_by is None:
                raise
            # `break_off` has canceled the task only to abort this write. Undo this, so that the task continues and returns normally.
            if self._task is not None:
                self._task.uncancel()
            raise Broken from None
        except OSError as error:
            self.broken_by = GONE
            raise Broken from error
        finally:
            self.writing_since = 0.0
            self._awaits_send = False

    def _note_written(self, size: int) -> None:
        self.bytes_written += size
        measures.bytes += size
        blocked = self._loop.time() - self.writing_since
        if blocked >= BLOCKED_SECONDS:
            metrics.WRITE_BLOCKED.observe(blocked)
