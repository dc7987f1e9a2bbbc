"""Tails: one reader per watched tenant, which appends new frames to the tenant's ring and wakes its streams.

A hint or the poll only raises the position that a tail must reach, and the tail reads until it has reached this position. So no event is
lost, in any order of hints and reads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import psycopg
from django.db import Error as DatabaseError
from psycopg_pool import PoolTimeout

from events import metrics
from events.log.cursor import Cursor, CursorSealer
from events.log.reading import Bounds, LogError, LogReader
from events.stream.frames import Frame
from events.stream.reading.pages import read_pages
from events.stream.reading.ring import Ring, RingBudget
from events.stream.reading.sharing import Batch
from events.stream.reasons import CURSOR_EXPIRED, LOG_GONE, UNREADABLE, Reason

logger = logging.getLogger(__name__)

# A few reads at once are enough: positions that are added to a log during a slow read are all returned by the next read of this log.
READS_AT_ONCE = 2
TENANTS_PER_READ = 16
# After the tail has pushed new frames to this many streams, which takes some milliseconds, it lets other tasks run.
_PUSHED_AT_ONCE = 256
_SHORTEST_POLL_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 1.0
_RETRY_SECONDS = 0.2

# Errors of psycopg's pool, which reads the log, and errors of Django, which reads all other rows.
READ_FAILURES = (psycopg.Error, PoolTimeout, DatabaseError, OSError)


class Follower(Protocol):
    """The methods of a stream that its tail calls."""

    def push(self, batch: Batch) -> None:
        """Write frames that were just appended to the ring."""

    def close(self, reason: Reason) -> None:
        """End after the frames that the stream has already taken."""


class Tail:
    """Follows the end of one tenant's log, and keeps the newest frames."""

    __slots__ = ("epoch", "followers", "heard", "heard_at", "queued", "ring", "sealer", "tenant_id")

    def __init__(self, tenant_id: str, bounds: Bounds, sealer: CursorSealer) -> None:
        self.tenant_id = tenant_id
        self.epoch = bounds.epoch
        self.heard = bounds.head
        # The time, in Unix seconds, at which this process first learned of events that it has not read yet.
        self.heard_at = time.time()
        self.ring = Ring(bounds.head)
        self.sealer = sealer
        self.followers: set[Follower] = set()
        self.queued = False

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.ring.end)

    @property
    def head(self) -> int:
        """The last position that this process knows."""
        return max(self.heard, self.ring.end)

    @property
    def is_behind(self) -> bool:
        return self.heard > self.ring.end

    def close(self, reason: Reason) -> None:
        """End every attached stream."""
        for follower in list(self.followers):
            follower.close(reason)


class Tails:
    """All tails of one process. At most two statements run at once. Each statement reads the next page of up to sixteen waiting tenants."""

    def __init__(self, log: LogReader, *, ring_bytes: int) -> None:
        self._log = log
        self._budget = RingBudget(ring_bytes)
        self._tails: dict[str, Tail] = {}
        self._behind: deque[Tail] = deque()
        self._readers: set[asyncio.Task[None]] = set()
        self._poll_now = asyncio.Event()

    def follow(self, follower: Follower, tenant_id: str, bounds: Bounds, sealer: CursorSealer) -> Tail:
        """Attach a stream to the tenant's tail, and let the tail read up to the head in `bounds`. The first stream creates the tail."""
        tail = self._tails.get(tenant_id)
        if tail is not None and tail.epoch != bounds.epoch:
            tail.close(CURSOR_EXPIRED)
            tail = None
        if tail is None:
            tail = self._tails[tenant_id] = Tail(tenant_id, bounds, sealer)
            # Wake the poll, which sleeps while no tenant is watched.
            self._poll_now.set()
        tail.followers.add(follower)
        self.heard(tenant_id, bounds.head)
        return tail

    def leave(self, follower: Follower, tail: Tail) -> None:
        """Detach a stream. If it was the last stream of the tail, remove the tail."""
        tail.followers.discard(follower)
        if not tail.followers and self._tails.get(tail.tenant_id) is tail:
            del self._tails[tail.tenant_id]
            self._budget.forget(tail.ring)
            # Ended streams are in reference cycles, and would keep the frames in memory until Python collects these cycles.
            tail.ring.clear()

    def heard(self, tenant_id: str, position: int) -> None:
        """Store that the tenant's log now reaches `position`, and queue a read of the log. Does nothing for unwatched tenants."""
        tail = self._tails.get(tenant_id)
        if tail is not None and position > tail.heard:
            if not tail.is_behind:
                tail.heard_at = time.time()
            tail.heard = position
        if tail is not None and tail.is_behind:
            self._queue(tail)

    def forget_frames(self, tenant_id: str) -> None:
        """Drop the frames of the tenant's ring after stored events were rewritten. Streams that need these frames read pages."""
        tail = self._tails.get(tenant_id)
        if tail is not None:
            tail.ring.clear()
            self._budget.filled(tail.ring)

    @property
    def buffered(self) -> int:
        """Bytes of the frames in all rings."""
        return self._budget.total

    def look_now(self) -> None:
        """Poll immediately, because hints may have been lost."""
        self._poll_now.set()

    async def poll(self) -> None:
        """Query all watched heads in one statement, every 50 ms while new entries are found, otherwise with growing pauses."""
        pause = _SHORTEST_POLL_SECONDS
        while True:
            try:
                async with asyncio.timeout(pause if self._tails else None):
                    await self._poll_now.wait()
            except TimeoutError:
                pass  # The pause ended without a request to poll immediately.
            self._poll_now.clear()
            try:
                found = await self._look()
            except READ_FAILURES as error:
                logger.warning("heads were not read: %s", type(error).__name__)
                found = False
            pause = _SHORTEST_POLL_SECONDS if found else min(pause * 2, _LONGEST_POLL_SECONDS)

    async def _look(self) -> bool:
        watched = dict(self._tails)
        # Read the cursors before the query, because a tail may read new entries during the query. A cursor that is read later could be
        # beyond the result of the query, and the log would seem to have lost entries.
        known = {tenant_id: tail.cursor for tenant_id, tail in watched.items()}
        heads = await self._log.heads(list(watched))
        found = 0
        for tenant_id, tail in watched.items():
            head = heads.get(tenant_id)
            if head is None:
                tail.close(LOG_GONE)
            elif head.epoch != tail.epoch:
                tail.close(CURSOR_EXPIRED)
            elif head < known[tenant_id]:
                # Entries that this process has read and sent no longer exist. The next poll finds the new epoch and closes the streams.
                await self._log.raise_epoch(tenant_id, known[tenant_id])
            elif head.position > tail.heard:
                found += 1
                self.heard(tenant_id, head.position)
        metrics.HINTS_MISSED.inc(found)
        return found > 0

    def _queue(self, tail: Tail) -> None:
        if tail.queued:
            return
        tail.queued = True
        self._behind.append(tail)
        if len(self._readers) < READS_AT_ONCE:
            reader = asyncio.get_running_loop().create_task(self._read_behind())
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)

    async def _read_behind(self) -> None:
        while self._behind:
            turn = [self._behind.popleft() for _ in range(min(len(self._behind), TENANTS_PER_READ))]
            if watched := [tail for tail in turn if tail.followers]:
                await self._read(watched)
            for tail in turn:
                tail.queued = False
                # Read one page at a time, so that a tenant far behind queues again after all other tenants.
                if tail.is_behind and tail.followers:
                    tail.queued = True
                    self._behind.append(tail)

    async def _read(self, tails: Sequence[Tail]) -> None:
        heard = [tail.heard for tail in tails]
        try:
            pages = await read_pages(self._log, [(tail.tenant_id, tail.cursor, tail.sealer) for tail in tails])
        except READ_FAILURES as error:
            # The database is unavailable. Streams still send heartbeats and keep their positions, and continue when the database answers
            # again.
            logger.warning("a tail was not read: %s", type(error).__name__)
            await asyncio.sleep(_RETRY_SECONDS)
            return
        for tail, page, heard_before in zip(tails, pages, heard, strict=True):
            if isinstance(page, LogError):
                tail.close(UNREADABLE[type(page)])
                tail.heard = tail.ring.end
            # Skip a tail that its last stream has left: its ring was already removed from the budget. New frames would add the ring to the
            # budget again, and it would never be removed.
            elif tail.followers and page.frames:
                await self._extend(tail, page.frames)
            elif tail.followers and tail.heard == heard_before:
                # A hint is sent after the commit of its events, so if the page is empty, the position in the hint does not exist. If
                # another hint arrived during the read, `heard` has changed, and the tail reads again.
                tail.heard = tail.ring.end

    async def _extend(self, tail: Tail, frames: list[Frame]) -> None:
        tail.ring.append(frames)
        self._budget.filled(tail.ring)
        batch = Batch(tail.ring, asyncio.get_running_loop().time())
        for number, follower in enumerate(list(tail.followers), start=1):
            # A stream may have detached while other tasks ran.
            if follower in tail.followers:
                follower.push(batch)
            if number % _PUSHED_AT_ONCE == 0:
                await asyncio.sleep(0)
