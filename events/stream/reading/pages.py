"""Pages of frames for streams whose next event is older than the frames in the ring (the newest frames of the tenant, in memory). Each page
is read once for all streams at the same position."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from events import metrics
from events.log.cursor import Cursor, CursorSealer
from events.log.reading import Bounds, LogError, LogHasHole, LogReader, Page
from events.stream.frames import Frame, encode_frames

logger = logging.getLogger(__name__)

PAGE_EVENTS = 256
PAGE_BYTES = 128 * 1024
# Maximum number of reads at the same time. The pool has more connections, so that replays never use the connections that the tails need.
REPLAYS_AT_ONCE = 4
# How long a page is cached after its last request. Many streams request the same pages within seconds. Without this limit, the pages of
# every replayed log would stay in memory until the memory limit of the cache is reached.
KEPT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class FramePage:
    """Frames directly after a cursor, and the bounds of the log at the time of the read."""

    bounds: Bounds
    frames: list[Frame]

    @property
    def size(self) -> int:
        return sum(len(frame.data) for frame in self.frames)

    def frames_after(self, position: int) -> list[Frame]:
        """Return the frames after a position, which must not be before the page. Positions are dense, so a subtraction gives the index."""
        return self.frames[position + 1 - self.frames[0].position :] if self.frames else []

    def frame_after(self, position: int) -> Frame | None:
        """Return the next frame after a position, or None if the page does not contain the frame."""
        return self.frames[position + 1 - self.frames[0].position] if self.frames and position < self.frames[-1].position else None


async def read_page(log: LogReader, tenant_id: str, cursor: Cursor, sealer: CursorSealer) -> FramePage:
    """Read and encode the page after a cursor; raises the errors of `LogReader.page`."""
    try:
        page = await log.page(tenant_id, cursor, max_events=PAGE_EVENTS, max_bytes=PAGE_BYTES)
    except LogHasHole as hole:
        _tell_of(hole, tenant_id, cursor, sealer)
        raise
    return _encoded(page, sealer)


async def read_pages(log: LogReader, places: Sequence[tuple[str, Cursor, CursorSealer]]) -> list[FramePage | LogError]:
    """Read the pages of several tenants together; return the result or the error of `read_page` for each tenant and cursor."""
    asked = [(tenant_id, cursor) for tenant_id, cursor, _ in places]
    found: list[FramePage | LogError] = []
    for (tenant_id, cursor, sealer), page in zip(places, await log.pages(asked, max_events=PAGE_EVENTS, max_bytes=PAGE_BYTES), strict=True):
        if isinstance(page, LogHasHole):
            _tell_of(page, tenant_id, cursor, sealer)
        found.append(page if isinstance(page, LogError) else _encoded(page, sealer))
    return found


def _encoded(page: Page, sealer: CursorSealer) -> FramePage:
    return FramePage(page.bounds, encode_frames(page.events, epoch=page.bounds.epoch, sealer=sealer))


def _tell_of(hole: LogHasHole, tenant_id: str, cursor: Cursor, sealer: CursorSealer) -> None:
    # Streams end at the hole. The message in the log of the process contains the offset after the hole, so that a client that accepts the
    # loss can resume there.
    passed = sealer.seal(Cursor(cursor.epoch, hole.after))
    logger.critical("the log of %s has a hole after %d; it continues after offset %s", tenant_id, cursor.position, passed)


@dataclass(slots=True)
class _Kept:
    """A cached page, and the time of the event loop at which it was last requested."""

    page: FramePage
    asked_at: float


class SharedPages:
    """Reads a few pages at a time, in the order of requests. Streams that request the same page share one read."""

    def __init__(self, log: LogReader, *, limit: int) -> None:
        self._log = log
        self._limit = limit
        self._turn = asyncio.Semaphore(REPLAYS_AT_ONCE)
        # The cached pages, in the order of their last request.
        self._kept: OrderedDict[tuple[str, Cursor], _Kept] = OrderedDict()
        self._size = 0
        # Each key is a tenant and a cursor.
        self._running: dict[tuple[str, Cursor], asyncio.Task[FramePage]] = {}
        # Reads that began before stored events were rewritten; their pages are not cached.
        self._forgotten: set[tuple[str, Cursor]] = set()

    @property
    def size(self) -> int:
        """Bytes of the cached pages."""
        return self._size

    async def after(self, tenant_id: str, cursor: Cursor, sealer: CursorSealer) -> FramePage:
        """Return the page after a cursor."""
        # Shield the read, because a stream that ends must not cancel the read for other streams.
        return await asyncio.shield(self.begin(tenant_id, cursor, sealer))

    def begin(self, tenant_id: str, cursor: Cursor, sealer: CursorSealer) -> asyncio.Future[FramePage]:
        """Return the page after a cursor; concurrent requests for the same page share the read.

        Only full pages are cached: the last page of a log still grows.
        """
        place = (tenant_id, cursor)
        kept = self._kept.get(place)
        if kept is not None:
            metrics.PAGE_CACHE_HITS.inc()
            self._kept.move_to_end(place)
            loop = asyncio.get_running_loop()
            kept.asked_at = loop.time()
            at_hand: asyncio.Future[FramePage] = loop.create_future()
            at_hand.set_result(kept.page)
            return at_hand
        running = self._running.get(place)
        if running is not None:
            metrics.PAGE_CACHE_HITS.inc()
            return running
        metrics.PAGE_READS.inc()
        running = self._running[place] = asyncio.create_task(self._read(tenant_id, cursor, sealer))
        running.add_done_callback(partial(self._has_read, place))
        return running

    def _has_read(self, place: tuple[str, Cursor], reading: asyncio.Task[FramePage]) -> None:
        del self._running[place]
        self._forgotten.discard(place)
        if not reading.cancelled():
            # Retrieve the exception: asyncio would log it as never retrieved if every waiting stream has ended.
            reading.exception()

    async def _read(self, tenant_id: str, cursor: Cursor, sealer: CursorSealer) -> FramePage:
        async with self._turn:
            page = await read_page(self._log, tenant_id, cursor, sealer)
        is_whole = page.frames and page.frames[-1].position < page.bounds.head
        if is_whole and (tenant_id, cursor) not in self._forgotten:
            self._keep((tenant_id, cursor), page)
        return page

    def _keep(self, place: tuple[str, Cursor], page: FramePage) -> None:
        self._kept[place] = _Kept(page, asyncio.get_running_loop().time())
        self._size += page.size
        while self._size > self._limit and self._kept:
            self._drop_oldest()

    def let_go(self, now: float) -> None:
        """Drop the pages that no stream has requested for `KEPT_SECONDS`; `now` is a time of the event loop."""
        while self._kept and now - next(iter(self._kept.values())).asked_at >= KEPT_SECONDS:
            self._drop_oldest()

    def forget(self, tenant_id: str) -> None:
        """Drop the pages of a tenant; a page that is being read is returned but not cached."""
        for place in [place for place in self._kept if place[0] == tenant_id]:
            self._size -= self._kept.pop(place).page.size
        self._forgotten.update(place for place in self._running if place[0] == tenant_id)

    def _drop_oldest(self) -> None:
        _, dropped = self._kept.popitem(last=False)
        self._size -= dropped.page.size
