"""The lag in heartbeats: the number of unsent events, and the age of the oldest unsent event."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from events.stream.lag import Lag, lag_of
from tests.events.stream.fake_log import SEALER, FakeLog, OpenStream, run_story, until


def test_a_stream_at_the_head_has_no_lag() -> None:
    assert lag_of(position=7, head=7, oldest_at=0.0, now=1000.0) == Lag(7, 0, 0)


def test_a_stream_beyond_the_known_head_has_no_lag() -> None:
    assert lag_of(position=9, head=7, oldest_at=0.0, now=1000.0) == Lag(9, 0, 0)


def test_the_age_is_not_negative_if_the_clock_is_behind_the_clock_of_the_database() -> None:
    assert lag_of(position=6, head=7, oldest_at=1000.5, now=1000.0) == Lag(7, 1, 0)


def test_the_lag_of_a_blocked_stream_has_the_number_and_age_of_its_unsent_events() -> None:
    async def story() -> None:
        log = FakeLog()
        opened = OpenStream(log)
        stream = await opened.opened()
        opened.connection.reads.clear()
        opened.grow(1)
        await until(lambda: stream.position == 1)
        log.recorded_at = datetime.now(UTC) - timedelta(seconds=90)
        opened.grow(4)
        await until(lambda: opened.tails.follow(stream, "acme", log.bounds(), SEALER).ring.end == 5)
        lag = stream.lag()
        assert (lag.head, lag.events) == (5, 4)
        assert 90_000 <= lag.ms < 100_000
        opened.connection.reads.set()
        await until(lambda: stream.position == 5)
        assert stream.lag() == Lag(5, 0, 0)

    run_story(story)


def test_the_age_of_unread_events_begins_when_their_hint_arrives() -> None:
    async def story() -> None:
        log = FakeLog()
        opened = OpenStream(log)
        stream = await opened.opened()
        log.failures = [OSError("gone")] * 1000
        before = time.time()
        opened.grow(3)
        lag = stream.lag()
        assert (lag.head, lag.events) == (3, 3)
        assert lag.ms <= (time.time() - before) * 1000 + 1

    run_story(story)


def test_between_two_pages_the_lag_has_the_age_of_the_last_read_event() -> None:
    async def story() -> None:
        log = FakeLog()
        log.head, log.page_size = 20, 10
        log.recorded_at = datetime.now(UTC) - timedelta(hours=1)
        log.before_answer = [lambda: None, lambda: log.failures.extend([OSError("gone")] * 1000)]
        stream = await OpenStream(log).opened()
        await until(lambda: stream.position == 10)
        lag = stream.lag()
        assert (lag.head, lag.events) == (20, 10)
        assert 3_590_000 < lag.ms < 3_700_000

    run_story(story)
