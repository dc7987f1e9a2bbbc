"""One open stream: a position in its tenant's log, and the single writer of its connection.

All output is written in order, so a heartbeat never contains a position beyond the written events. The coroutine of the stream writes.
While the coroutine waits at the end of the log, the tail writes the new entries that it has read. Other code only wakes the writer,
requests the end of the stream, or breaks a stuck write.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from psycopg import errors

from events import metrics
from events.log.cursor import Cursor, CursorSealer
from events.log.reading import LogError
from events.stream import frames
from events.stream.bell import Bell
from events.stream.frames import Frame
from events.stream.lag import Lag, lag_of
from events.stream.measures import measures
from events.stream.operating.canary import Canary, WaitingCanary
from events.stream.reading.pages import FramePage
from events.stream.reading.replay import Replay
from events.stream.reading.sharing import WRITE_BYTES, Batch
from events.stream.reading.tail import READ_FAILURES
from events.stream.reasons import DISCONNECTED, FAILED, LOG_BROKEN, READ_TIMEOUT, ROTATION, TOKEN_EXPIRED, UNREADABLE, Reason
from events.stream.subscription import Sources, Subscription
from events.stream.writer import OPERATOR, SLOW, Broken, PassOn, Send, Writer

logger = logging.getLogger(__name__)

_SHORTEST_SHARE_OF_LIFETIME = 0.8
_DISCONNECT_SECONDS = 1.0
_CANARIES_KEPT = 16


class Stream:
    """Writes one subscription to one connection until it ends."""

    __slots__ = (
        "_canaries", "_ending", "_epoch", "_expires_at", "_heartbeat_due", "_is_parked", "_loop", "_not_before", "_pace", "_read_to",
        "_replay", "_rotates_at", "_sealer", "_tail", "_tails", "_types", "_woken", "opened_at", "position", "slot", "subscription",
        "writer",
    )  # fmt: skip

    def __init__(
        self,
        subscription: Subscription,
        first_page: FramePage | None,
        *,
        send: Send,
        at_once: PassOn | None = None,
        sealer: CursorSealer,
        sources: Sources,
    ) -> None:
        self.subscription = subscription
        self.slot = 0
        self.position = subscription.start.position
        self._epoch = subscription.start.epoch
        self._types = subscription.types
        self._not_before = subscription.not_before
        self._sealer = sealer
        self._tails = sources.tails
        self._pace = sources.pace
        self._replay = Replay(sources.pages, subscription.tenant_id, sealer, first=first_page, wake=self.wake)
        self._loop = asyncio.get_running_loop()
        self._woken = Bell(self._loop)
        self._ending: Reason | None = None
        self._heartbeat_due = False
        self._canaries: list[WaitingCanary] = []
        self._read_to: datetime | None = None
        self._is_parked = False
        self.writer = Writer(send, self.wake, at_once)
        # The time of the event loop at which the stream was opened, for the list of open connections.
        self.opened_at = now = self._loop.time()
        # The time of the planned end, with jitter, so that clients whose streams opened together do not reconnect together.
        self._rotates_at = now + self._pace.lifetime * random.uniform(_SHORTEST_SHARE_OF_LIFETIME, 1.0)  # noqa: S311  (not a secret)
        self._expires_at = now + subscription.expires_at - time.time()
        self._tail = self._tails.follow(self, subscription.tenant_id, subscription.bounds, sealer)

    async def run(self) -> None:
        """Write the opening, then events, heartbeats and the end. Return when there is nothing more to write."""
        try:
            await self._write(frames.opening(self._pace.retry_ms, self._offset()) + self.subscription.notice)
            while self._ending is None:
                self._woken.clear()
                await self._step()
            await self._end(self._ending)
        except Broken:
            logger.debug("a stream broke: %s", self.writer.broken_by)
        except Exception:
            logger.exception("A stream failed unexpectedly.")
            await self._fail()

    def leave(self) -> None:
        """Detach from the tail and drop the pages. Must be called once at the end of every stream, also after an error."""
        self._tails.leave(self, self._tail)
        self._replay.forget()

    def wake(self) -> None:
        """Make the writer check the ring again."""
        self._woken.ring()

    def push(self, batch: Batch) -> None:
        """Write the new frames of the tail if the stream is idle and up to date; otherwise wake the writer, which writes them later."""
        is_next = self._is_parked and not self._woken.has_rung and self._not_before is None
        share = batch.share(self.position, self._types) if is_next else None
        if share is None or (share.events and not self.writer.pass_on(share, batch.now)):
            self._woken.ring()
            return
        self.position = batch.end
        self._read_to = share.read_to or self._read_to
        if share.events:
            measures.events += share.events
            self._note_latency()

    def close(self, reason: Reason) -> None:
        """End after the frames that the stream has already taken. Keep the first reason, if this method is called several times."""
        if self._ending is None:
            self._ending = reason
        self._woken.ring()

    def break_off(self, cause: str) -> None:
        """End without another byte: the client has disconnected, or a write is stuck."""
        self.writer.break_off(cause)

    def disconnect(self) -> None:
        """End at an operator's request: send the offset if the client still reads; otherwise end without an offset after one second."""
        self.close(DISCONNECTED)
        self._loop.call_later(_DISCONNECT_SECONDS, self._break_if_blocked)

    def offer(self, canary: Canary) -> None:
        """Accept a canary, which the writer writes after all entries that the tail knows. A stuck stream keeps only a few canaries."""
        event_type = canary.type_for(self._types)
        if event_type is not None and len(self._canaries) < _CANARIES_KEPT:
            self._canaries.append(WaitingCanary(self._tail.head, event_type, canary))
            self.wake()

    def on_time(self, now: float) -> float:
        """Do the work that is due: abort a stuck write, end the stream, or request a heartbeat. Return the time of the next check."""
        measures.sample_lag(self.lag)
        if self.writer.writing_since:
            stuck_at = self.writer.writing_since + self._pace.write_deadline
            if now >= stuck_at:
                self.break_off(SLOW)
            return stuck_at
        if now >= self._expires_at:
            self.close(TOKEN_EXPIRED)
        elif now >= self._rotates_at:
            self.close(ROTATION)
        elif now >= self.writer.written_at + self._pace.heartbeat:
            self._heartbeat_due = True
            self.wake()
        quiet_until = max(self.writer.written_at + self._pace.heartbeat, now)
        return min(quiet_until, self._expires_at, self._rotates_at, now + self._pace.write_deadline)

    @property
    def ended_by(self) -> str:
        """The cause of the end, as one word."""
        return self.writer.broken_by or (self._ending.name if self._ending is not None else FAILED.name)

    def _break_if_blocked(self) -> None:
        if self.writer.writing_since:
            self.break_off(OPERATOR)

    def lag(self) -> Lag:
        """Return the lag of the stream behind the position that the tail knows, without a query."""
        return lag_of(position=self.position, head=self._tail.head, oldest_at=self._oldest_unwritten_at(), now=time.time())

    def _oldest_unwritten_at(self) -> float:
        if self._tail.ring.end <= self.position:
            return self._tail.heard_at
        following = self._tail.ring.frame_after(self.position) or self._replay.frame_after(self.position)
        # Between two pages the next event is unknown, but it was recorded no earlier than the last event that was read.
        recorded_at = following.recorded_at if following else self._read_to
        return recorded_at.timestamp() if recorded_at else self._tail.heard_at

    async def _step(self) -> None:
        self.writer.check()
        if self._heartbeat_due:
            metrics.HEARTBEATS.inc()
            await self._write(frames.heartbeat(self._offset(), self.lag()))
        elif self._canaries and self.position >= min(self._canaries[0].behind, self._tail.head):
            await self._write_canary()
        elif not self._tail.ring.covers(self.position):
            await self._write_page()
        elif self.position < self._tail.ring.end:
            await self._write_new()
        else:
            self._replay.forget()
            self._is_parked = True
            await self._woken.heard()
            self._is_parked = False

    async def _write_page(self) -> None:
        try:
            ready = self._replay.frames_after(Cursor(self._epoch, self.position), self._loop.time())
        except LogError as error:
            self.close(UNREADABLE[type(error)])
            return
        except READ_FAILURES as error:
            self.close(READ_TIMEOUT if isinstance(error, errors.QueryCanceled) else LOG_BROKEN)
            return
        if ready is None:
            await self._woken.heard()
            return
        before = measures.events
        await self._write(self._taken(ready))
        measures.replayed += measures.events - before
        # A write may return without suspending the task. Without this pause, a long replay would block every other stream.
        await asyncio.sleep(0)

    async def _write_new(self) -> None:
        data = self._taken(self._tail.ring.frames_after(self.position))
        await self._write(data)
        if data:
            self._note_latency()

    async def _write_canary(self) -> None:
        waiting = self._canaries.pop(0)
        await self._write(waiting.frame(offset=self._offset(), stream_id=self.subscription.bounds.stream_id, now=time.time()))
        waiting.canary.written[self.subscription.connection_id] = written_at = time.time()
        metrics.COMMIT_TO_WRITE.labels("canary").observe(max(0.0, written_at - waiting.canary.requested_at))

    def _taken(self, ready: Iterable[Frame]) -> bytes:
        """Return the bytes of the frames that fit into one write. Advance the position past each examined frame, even if it is excluded."""
        parts: list[bytes] = []
        size = 0
        for frame in ready:
            if self._wants(frame):
                if parts and size + len(frame.data) > WRITE_BYTES:
                    break
                parts.append(frame.data)
                size += len(frame.data)
            self.position = frame.position
            self._read_to = frame.recorded_at
        measures.events += len(parts)
        return b"".join(parts)

    def _wants(self, frame: Frame) -> bool:
        if self._not_before is not None:
            if frame.recorded_at < self._not_before:
                return False
            # This event is not older than the requested time. Recording times never decrease, so later events need no check.
            self._not_before = None
        return self._types is None or frame.type in self._types

    def _offset(self) -> str:
        return self._sealer.seal(Cursor(self._epoch, self.position))

    async def _write(self, data: bytes) -> None:
        await self.writer.write(data)
        if data:
            self._heartbeat_due = False

    async def _end(self, reason: Reason) -> None:
        last_words = frames.offset_only(self._offset()) + frames.error(reason.code, reason.message, self._offset())
        await self.writer.send_body(last_words, more=True)
        await self.writer.send_body(b"", more=False)

    async def _fail(self) -> None:
        # The message has no offset: the last write may be incomplete, and an offset must not be beyond the written events.
        with suppress(Broken):
            await self.writer.send_body(frames.error(FAILED.code, FAILED.message, None), more=True)
            await self.writer.send_body(b"", more=False)

    def _note_latency(self) -> None:
        if measures.may_sample() and self._read_to is not None:
            metrics.COMMIT_TO_WRITE.labels("event").observe(max(0.0, time.time() - self._read_to.timestamp()))
