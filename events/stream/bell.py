"""Wakes the single task of a stream, without the list of waiters of `asyncio.Event`."""

from __future__ import annotations

import asyncio


class Bell:
    """Stays set until it is cleared. An idle stream keeps only the future that its task awaits."""

    __slots__ = ("_listener", "_loop", "has_rung")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listener: asyncio.Future[None] | None = None
        self.has_rung = False

    def ring(self) -> None:
        """Wake the task that waits. If no task waits, the next `heard` is done at once."""
        self.has_rung = True
        if self._listener is not None:
            if not self._listener.done():
                self._listener.set_result(None)
            self._listener = None

    def clear(self) -> None:
        """Clear the bell until the next ring."""
        self.has_rung = False

    def heard(self) -> asyncio.Future[None]:
        """Return a future that is done when the bell rings, or is done already if the bell has rung. For one task only."""
        listener = self._loop.create_future()
        if self.has_rung:
            listener.set_result(None)
        else:
            self._listener = listener
        return listener
