"""Wakes the single task of a stream, without the list of waiters of `asyncio.Event`."""

from __future__ import annotations

import asyncio


class Bell:
    """A bell that has rung stays rung until `clear`. While the stream is idle, the bell keeps only the future that its task awaits."""

    __slots__ = ("_listener", "_loop", "has_rung")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listener: asyncio.Future[None] | None = None
        self.has_rung = False

    def ring(self) -> None:
        """Wake the waiting task. If no task waits, the next call of `heard` returns a future that is already done."""
        self.has_rung = True
        if self._listener is not None:
            if not self._listener.done():
                self._listener.set_result(None)
            self._listener = None

    def clear(self) -> None:
        """Mark the bell as not rung."""
        self.has_rung = False

    def heard(self) -> asyncio.Future[None]:
        """Return a future that is done when the bell rings; if it has rung before, the future is done already. Only one task may await the
        bell.
        """
        listener = self._loop.create_future()
        if self.has_rung:
            listener.set_result(None)
        else:
            self._listener = listener
        return listener
