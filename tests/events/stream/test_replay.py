"""Streams whose next events are no longer in the ring. Waiting for a page blocks no other stream. A few pages are read at the same time, in
the order of requests."""

from __future__ import annotations

import asyncio
import gc

from events.log.cursor import Cursor
from events.log.reading import Page
from events.stream.frames import Frame
from events.stream.reading.pages import KEPT_SECONDS, REPLAYS_AT_ONCE, SharedPages
from events.stream.reasons import DRAINING
from events.stream.subscription import Pace
from events.stream.writer import GONE
from tests.events.stream.fake_log import SEALER, FakeLog, OpenStream, run_story, until


class SlowLog(FakeLog):
    """Answers only after the test has set `may_answer`, and counts the waiting calls."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.waiting = self.most_waiting = 0
        self.asked: list[int] = []

    async def page(self, tenant_id: str, cursor: Cursor, *, max_events: int, max_bytes: int) -> Page:
        self.asked.append(cursor.position)
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.may_answer.wait()
        self.waiting -= 1
        return await super().page(tenant_id, cursor, max_events=max_events, max_bytes=max_bytes)


def test_a_stream_sends_heartbeats_while_it_waits_for_its_page() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 10
        opened = OpenStream(log, pace=Pace(0.05, 600.0, 20.0, 2000))
        stream = await opened.opened()
        await until(lambda: log.waiting == 1)
        stream.on_time(stream.writer.written_at + 1.0)
        await until(lambda: b": heartbeat\n:head=10 lag_events=10 " in opened.connection.body)
        log.may_answer.set()
        await until(lambda: stream.position == 10)

    run_story(story)


def test_a_stream_can_be_ended_immediately_while_it_waits_for_its_page() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 10
        opened = OpenStream(log)
        stream = await opened.opened()
        await until(lambda: log.waiting == 1)
        stream.close(DRAINING)
        await opened.task
        assert b'"code":"connection_timeout"' in opened.connection.body
        # No stream waits for the page any more, and no error is logged.
        log.failures = [OSError("gone")]
        log.may_answer.set()
        await until(lambda: log.waiting == 0)

    run_story(story)


def test_the_stream_of_a_client_that_disconnects_during_a_read_ends_immediately() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 10
        opened = OpenStream(log)
        stream = await opened.opened()
        await until(lambda: log.waiting == 1)
        stream.break_off("client")
        await opened.task
        assert stream.ended_by == "client"

    run_story(story)


def test_a_few_pages_are_read_at_the_same_time_in_the_order_of_requests() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 100
        pages = SharedPages(log, limit=1_000_000)  # type: ignore[arg-type]  # the method that pages use
        wanted = [pages.begin("acme", Cursor(1, position), SEALER) for position in range(20)]
        await until(lambda: log.waiting == REPLAYS_AT_ONCE)
        log.may_answer.set()
        await asyncio.gather(*wanted)
        assert log.most_waiting == REPLAYS_AT_ONCE
        assert log.asked == sorted(log.asked)

    run_story(story)


def test_streams_at_the_same_position_share_one_read() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 100
        pages = SharedPages(log, limit=1_000_000)  # type: ignore[arg-type]  # the method that pages use
        wanted = [pages.begin("acme", Cursor(1, 7), SEALER) for _ in range(50)]
        log.may_answer.set()
        found = await asyncio.gather(*wanted)
        assert log.asked == [7]
        assert {id(page) for page in found} == {id(found[0])}

    run_story(story)


def test_pages_are_dropped_after_a_time_without_use() -> None:
    async def story() -> None:
        log = FakeLog()
        log.head = 300
        pages = SharedPages(log, limit=1_000_000)  # type: ignore[arg-type]  # the method that pages use
        first = await pages.after("acme", Cursor(1, 0), SEALER)
        second = await pages.after("acme", Cursor(1, 100), SEALER)
        assert pages.size == first.size + second.size
        assert await pages.after("acme", Cursor(1, 0), SEALER) is first
        now = asyncio.get_running_loop().time()
        pages.let_go(now + KEPT_SECONDS - 1.0)
        assert pages.size == first.size + second.size
        pages.let_go(now + KEPT_SECONDS)
        assert pages.size == 0
        assert log.reads == 2
        await pages.after("acme", Cursor(1, 0), SEALER)
        assert log.reads == 3

    run_story(story)


def test_after_a_log_is_forgotten_its_pages_are_read_again() -> None:
    async def story() -> None:
        log = SlowLog()
        log.head = 300
        pages = SharedPages(log, limit=1_000_000)  # type: ignore[arg-type]  # the methods that pages use
        log.may_answer.set()
        await pages.after("acme", Cursor(1, 0), SEALER)
        other = await pages.after("other", Cursor(1, 0), SEALER)
        log.may_answer.clear()
        reading = pages.begin("acme", Cursor(1, 100), SEALER)
        await until(lambda: log.waiting == 1)

        pages.forget("acme")

        log.may_answer.set()
        await reading
        assert pages.size == other.size
        await pages.after("acme", Cursor(1, 0), SEALER)
        await pages.after("acme", Cursor(1, 100), SEALER)
        assert log.asked == [0, 0, 100, 0, 100]
        assert pages.size > other.size

    run_story(story)


def _frames_in_memory() -> int:
    return sum(type(one) is Frame for one in gc.get_objects())


def test_a_stream_that_ends_during_a_replay_frees_its_frames_without_garbage_collection() -> None:
    async def story() -> None:
        log = FakeLog()
        log.head = 300
        opened = OpenStream(log)
        stream = await opened.opened()
        await until(lambda: stream.position >= 100)
        opened.connection.reads.clear()
        opened.grow(5)
        await until(lambda: opened.tails.buffered > 0)
        stream.break_off(GONE)
        await opened.task
        assert 0 < stream.position < 305
        opened.sources.pages.let_go(asyncio.get_running_loop().time() + KEPT_SECONDS)
        assert _frames_in_memory() > 0
        stream.leave()
        assert _frames_in_memory() == 0

    gc.collect()
    gc.disable()
    try:
        run_story(story)
    finally:
        gc.enable()


def test_a_long_replay_does_not_block_other_streams() -> None:
    async def story() -> None:
        log = FakeLog()
        log.head, log.page_size = 20_000, 100
        replaying = OpenStream(log)
        stream = await replaying.opened()
        turns = 0
        while stream.position < 20_000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 200, "the reader returns to the event loop after each page"

    run_story(story)


def test_reading_resumes_at_the_same_position_after_a_database_outage() -> None:
    async def story() -> None:
        log = FakeLog()
        log.head = 5
        log.failures = [OSError("gone"), OSError("gone")]
        opened = OpenStream(log)
        stream = await opened.opened()
        await until(lambda: stream.position == 5)
        assert opened.connection.body.count(b"event: user.created") == 5

    run_story(story)
