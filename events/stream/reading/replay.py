"""Provides frames for a stream whose next event is no longer in the ring (the newest frames, in memory).

It reads the log page by page, and reads each page before the stream needs it. A page can be late if many other streams read pages, or if
the database is unavailable. Meanwhile the stream sends heartbeats and can be ended immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from events.log.cursor import Cursor, CursorSealer
from events.stream.frames import Frame
from events.stream.reading.pages import FramePage, SharedPages
from events.stream.reading.tail import READ_FAILURES

_RETRY_SECONDS = 0.25
_PATIENCE_SECONDS = 30.0


class Replay:
    """The pages of one stream; `wake` is called when the requested page is available."""

    __slots__ = ("_failing_since", "_page", "_pages", "_reading", "_reading_at", "_retry_at", "_sealer", "_tenant_id", "_wake")

    def __init__(
        self, pages: SharedPages, tenant_id: str, sealer: CursorSealer, *, first: FramePage | None, wake: Callable[[], None]
    ) -> None:
        self._pages = pages
        self._tenant_id = tenant_id
        self._sealer = sealer
        self._page = first
        self._wake = wake
        self._reading: asyncio.Future[FramePage] | None = None
        self._reading_at: Cursor | None = None
        self._failing_since = 0.0
        self._retry_at = 0.0

    def frame_after(self, position: int) -> Frame | None:
        """Return the next frame after a position if it is in memory."""
        return self._page.frame_after(position) if self._page is not None else None

    def frames_after(self, cursor: Cursor, now: float) -> list[Frame] | None:
        """Return the frames directly after the cursor, or None while the page with these frames is being read.

        Raises `LogError`. Raises an error of the database only if the database has failed for 30 s.
        """
        if self.frame_after(cursor.position) is None:
            self._page = self._next_page(cursor, now)
        if self._page is None:
            return None
        if self._reading is None and self._page.frames and self._page.frames[-1].position < self._page.bounds.head:
            self._begin(Cursor(cursor.epoch, self._page.frames[-1].position))
        return self._page.frames_after(cursor.position)

    def forget(self) -> None:
        """Drop the pages, because the stream has reached the ring or has ended."""
        self._page = self._reading = self._reading_at = None

    def _next_page(self, cursor: Cursor, now: float) -> FramePage | None:
        if now < self._retry_at:
            return None
        # If the stream has meanwhile taken frames from the ring, the page that was read ahead is at the wrong position.
        if self._reading is None or self._reading_at != cursor:
            self._begin(cursor)
        if self._reading is None or not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        try:
            page = reading.result()
        except READ_FAILURES:
            # The database is unavailable, so the stream keeps its position for a while and does not fail immediately.
            self._failing_since = self._failing_since or now
            if now - self._failing_since >= _PATIENCE_SECONDS:
                raise
            self._retry_at = now + _RETRY_SECONDS
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._wake)
            return None
        self._failing_since = 0.0
        return page

    def _begin(self, cursor: Cursor) -> None:
        self._reading = self._pages.begin(self._tenant_id, cursor, self._sealer)
        self._reading_at = cursor
        self._reading.add_done_callback(lambda _: self._wake())
