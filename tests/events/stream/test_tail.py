"""Tails: for every order of hints, reads and failures, the tail wakes a stream until the stream has every event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg

from events import metrics
from events.log.cursor import CursorSealer
from events.log.reading import CursorExpired, LogHasHole
from events.stream.reading.sharing import Batch
from events.stream.reading.tail import Tail, Tails
from events.stream.reasons import CURSOR_EXPIRED, LOG_BROKEN, LOG_GONE, Reason
from tests.events.stream.fake_log import FakeLog, until

SEALER = CursorSealer({"k1": "k" * 40}, tenant_id="acme")


def _hints_missed() -> float:
    return metrics.REGISTRY.get_sample_value("hint_missed_total") or 0.0


class Stream:
    """Follows a tail by position, as a connection does."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.closed: list[Reason] = []

    def push(self, batch: Batch) -> None:
        self.woken.set()

    def close(self, reason: Reason) -> None:
        self.closed.append(reason)
        self.woken.set()


def _run(story: Callable[[FakeLog, Tails], Awaitable[None]], *, polling: bool = False) -> None:
    async def told() -> None:
        log = FakeLog()
        tails = Tails(log, ring_bytes=1_000_000)  # type: ignore[arg-type]  # the methods that a tail uses
        poll = asyncio.create_task(tails.poll()) if polling else None
        try:
            async with asyncio.timeout(10):
                await story(log, tails)
        finally:
            if poll is not None:
                poll.cancel()

    asyncio.run(told())


async def _until(stream: Stream, tail: Tail, position: int) -> None:
    while tail.ring.end < position and not stream.closed:
        stream.woken.clear()
        await stream.woken.wait()


def test_a_hint_loads_frames_and_wakes_the_streams() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.head = 3
        tails.heard("acme", 3)
        await _until(stream, tail, 3)
        assert [frame.position for frame in tail.ring.frames_after(0)] == [1, 2, 3]
        assert log.reads == 1

    _run(story)


def test_a_hint_during_a_read_is_not_lost() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        def meanwhile() -> None:
            log.head = 2
            tails.heard("acme", 2)

        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.head = 1
        log.before_answer.append(meanwhile)
        tails.heard("acme", 1)
        await _until(stream, tail, 2)

    _run(story)


def test_a_hint_during_a_read_that_finds_nothing_is_not_lost() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        def meanwhile() -> None:
            log.head = 7
            tails.heard("acme", 7)

        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.before_answer.append(meanwhile)
        tails.heard("acme", 5)
        await _until(stream, tail, 7)

    _run(story)


def test_a_hint_of_a_position_that_never_appears_does_not_cause_endless_reads() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        tails.heard("acme", 1_000_000)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not tail.queued
        assert log.reads == 1
        log.head = 1
        tails.heard("acme", 1)
        await _until(stream, tail, 1)

    _run(story)


def test_a_database_outage_delays_events_and_loses_none() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.failures = [psycopg.OperationalError("gone"), OSError("gone")]
        log.head = 1
        tails.heard("acme", 1)
        await _until(stream, tail, 1)
        assert not stream.closed

    _run(story)


def test_events_up_to_a_distant_head_are_read_in_pages() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        log.page_size = 10
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.head = 95
        tails.heard("acme", 95)
        await _until(stream, tail, 95)
        assert log.reads == 10

    _run(story)


def test_polling_finds_events_without_a_hint() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        missed = _hints_missed()
        log.head = 2
        await _until(stream, tail, 2)
        assert _hints_missed() == missed + 1

    _run(story, polling=True)


def test_a_new_epoch_or_a_deleted_tenant_ends_the_streams() -> None:
    async def epoch(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.epoch = 2
        await _until(stream, tail, 1)
        assert stream.closed[0] == CURSOR_EXPIRED

    async def gone(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.gone = True
        await _until(stream, tail, 1)
        assert stream.closed[0] == LOG_GONE

    _run(epoch, polling=True)
    _run(gone, polling=True)


def test_a_stream_of_the_new_epoch_gets_a_new_tail() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        old, new = Stream(), Stream()
        first = tails.follow(old, "acme", log.bounds(), SEALER)
        log.epoch = 2
        second = tails.follow(new, "acme", log.bounds(), SEALER)
        assert old.closed == [CURSOR_EXPIRED]
        assert (first.epoch, second.epoch) == (1, 2)
        tails.leave(old, first)
        log.head = 1
        tails.heard("acme", 1)
        await _until(new, second, 1)

    _run(story)


def test_a_missing_position_or_an_expired_cursor_ends_the_streams_with_a_reason() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        for failure, reason in ((LogHasHole(7), LOG_BROKEN), (CursorExpired(), CURSOR_EXPIRED)):
            stream = Stream()
            tail = tails.follow(stream, "acme", log.bounds(), SEALER)
            log.failures = [failure]
            log.head += 1
            tails.heard("acme", log.head)
            await _until(stream, tail, log.head)
            assert stream.closed == [reason]
            tails.leave(stream, tail)

    _run(story)


def test_a_tail_is_removed_with_its_last_stream() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        one, two = Stream(), Stream()
        tail = tails.follow(one, "acme", log.bounds(), SEALER)
        assert tails.follow(two, "acme", log.bounds(), SEALER) is tail
        tails.leave(one, tail)
        tails.leave(two, tail)
        log.head = 4
        tails.heard("acme", 4)
        await asyncio.sleep(0)
        assert log.reads == 0
        assert tails.follow(one, "acme", log.bounds(), SEALER) is not tail

    _run(story)


def test_a_page_is_dropped_if_its_streams_have_ended_during_the_read() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.head = 3
        log.before_answer.append(lambda: tails.leave(stream, tail))
        tails.heard("acme", 3)
        await until(lambda: not tail.queued)
        assert log.reads == 1
        assert tails.buffered == 0

    _run(story)


def test_a_tail_that_dropped_its_frames_continues_with_new_frames() -> None:
    async def story(log: FakeLog, tails: Tails) -> None:
        stream = Stream()
        tail = tails.follow(stream, "acme", log.bounds(), SEALER)
        log.head = 3
        tails.heard("acme", 3)
        await _until(stream, tail, 3)

        tails.forget_frames("acme")
        tails.forget_frames("nobody")

        # A stream that needs older frames reads pages.
        assert not tail.ring.covers(2)
        assert tails.buffered == 0
        log.head = 4
        tails.heard("acme", 4)
        await _until(stream, tail, 4)
        assert [frame.position for frame in tail.ring.frames_after(3)] == [4]

    _run(story)
