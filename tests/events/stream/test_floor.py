"""The opening of a stream: the earliest valid cursor, and a warning before a cursor expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from events.log.cursor import Cursor, CursorSealer
from events.log.reading import Bounds
from events.stream.frames import Frame
from events.stream.reading.floor import expiry_notice, floor_headers

SEALER = CursorSealer({"k1": "k" * 40}, tenant_id="acme")
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
RETENTION = timedelta(days=30)


def _frame(age: timedelta) -> Frame:
    return Frame(1, NOW - age, "user.created", b"")


def test_before_the_first_pruning_the_response_has_a_floor_but_no_floor_time() -> None:
    assert floor_headers(Bounds(3, 90, 40, None, "est_x"), SEALER) == [(b"x-events-floor", SEALER.seal(Cursor(3, 40)).encode())]


@pytest.mark.parametrize("microsecond", [0, 1, 999_999])
def test_the_floor_time_is_the_first_whole_second_after_the_last_pruned_event(microsecond: int) -> None:
    dropped_at = datetime(2026, 2, 1, 10, 0, 59, microsecond, tzinfo=UTC)
    assert floor_headers(Bounds(3, 90, 40, dropped_at, "est_x"), SEALER)[1] == (b"x-events-floor-time", b"2026-02-01T10:01:00Z")


def test_a_warning_is_sent_after_nine_tenths_of_the_retention_of_the_next_event() -> None:
    assert expiry_notice(_frame(timedelta(days=27) - timedelta(seconds=1)), RETENTION, now=NOW) == b""
    assert expiry_notice(_frame(timedelta(days=27)), RETENTION, now=NOW) == (
        b":warning=cursor_expiring next_event_at=2026-03-04T12:00:00Z dropped_from=2026-04-03T12:00:00Z\n\n"
    )


def test_a_cursor_without_a_next_event_never_expires() -> None:
    assert expiry_notice(None, RETENTION, now=NOW) == b""
