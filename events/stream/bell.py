"""What wakes the one task of a stream: an event for a single listener, without the list of those who wait."""

from __future__ import annotations

import asyncio


class Bell:
    """Rings until it is cleared. An idle stream keeps nothing but the future that its task waits for."""

    __slots__ = ("_listener", "_loop", "has_rung")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listener: asyncio.Future[None] | None = None
        self.has_rung = False

    def ring(self) -> None:
        """Wake the listener, or whoever listens next."""
        self.has_rung = True
        if self._listener is not None:
            if not self._listener.done():
                self._listener.set_result(None)
            self._listener = None

    def clear(self) -> None:
        """Be silent until the next ring."""
        self.has_rung = False

    def heard(self) -> asyncio.Future[None]:
        """Return what is done when the bell rings, at once if it has. Belongs to one task."""
        listener = self._loop.create_future()
        if self.has_rung:
            listener.set_result(None)
        else:
            self._listener = listener
        return listener
