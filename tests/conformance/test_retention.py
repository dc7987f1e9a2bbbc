"""What clients get if the next event after their cursor was pruned: a new request gets 410 with the earliest valid cursor, and an open
stream ends. No client reads past a gap between events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from events.log.cursor import Cursor, CursorSealer
from events.log.retention import DueLog, prune_log
from events.models import Head
from foundation.timestamps import wire_time
from tests.conformance.reader import Block
from tests.conformance.target import Target
from tests.events.long_logs import fill_log

LONG_AGO = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
MESSAGE = "The cursor points to data no longer available in the stream."
# The log is larger than all buffers between the log and a client that does not read.
EVENTS = 1000
SIZE = 20_000


def _sealed(target: Target, position: int) -> str:
    epoch = Head.objects.get(pk=target.tenant.pk).epoch
    return CursorSealer(settings.CURSOR_KEYS, tenant_id=target.tenant.pk).seal(Cursor(epoch, position))


def _refused(target: Target, query: dict[str, str]) -> dict[str, Any]:
    with target.subscribe(query) as stream:
        assert stream.status == 410
        assert stream.headers["content-type"].startswith("application/json")
        document: dict[str, Any] = stream.document()
    assert set(document) == {"statusCode", "error", "message", "errorCode", "earliest_offset", "earliest_time"}
    assert (document["statusCode"], document["error"], document["errorCode"]) == (410, "Gone", "cursor_expired")
    assert document["message"].startswith(f"{MESSAGE} To resynchronize, ")
    return document


@pytest.mark.transport
def test_the_410_names_the_earliest_valid_cursor_with_its_time(target: Target) -> None:
    fill_log(target.tenant.pk, 2, recorded_at=LONG_AGO - timedelta(days=1))
    fill_log(target.tenant.pk, 3, recorded_at=LONG_AGO)
    prune_log(DueLog(target.tenant.pk, 0, 2))
    for query in ({"from": _sealed(target, 1)}, {"from_timestamp": "2025-12-01T00:00:00Z"}):
        document = _refused(target, query)
        assert document["earliest_time"] == wire_time(LONG_AGO)
        with target.subscribe({"from": document["earliest_offset"]}) as stream:
            stream.opened()
            assert [block.message["event"]["n"] for block in stream.events(3)] == [3, 4, 5]


def test_the_410_of_a_log_without_events_names_its_end_and_no_time(target: Target) -> None:
    fill_log(target.tenant.pk, 2, recorded_at=LONG_AGO)
    prune_log(DueLog(target.tenant.pk, 0, 2))
    document = _refused(target, {"from": _sealed(target, 1)})
    assert (document["earliest_offset"], document["earliest_time"]) == (_sealed(target, 2), None)


def test_the_410_after_a_restore_names_a_cursor_of_the_new_epoch(target: Target) -> None:
    fill_log(target.tenant.pk, 2, recorded_at=LONG_AGO)
    document = _refused(target, {"from": _sealed(target, 9)})
    assert document["earliest_offset"] == _sealed(target, 0)
    with target.subscribe({"from": document["earliest_offset"]}) as stream:
        stream.opened()
        assert [block.message["event"]["n"] for block in stream.events(2)] == [1, 2]


def test_a_cursor_at_the_end_of_an_idle_log_opens_a_stream_at_any_age(target: Target) -> None:
    fill_log(target.tenant.pk, 4, recorded_at=LONG_AGO)
    prune_log(DueLog(target.tenant.pk, 0, 4))
    with target.subscribe({"from": _sealed(target, 4)}) as stream:
        stream.opened()
        [expected] = target.write("user.created")
        assert stream.events(1)[0].message["event"]["id"] == expected


def test_a_stream_whose_next_page_was_pruned_ends_with_cursor_expired(target: Target) -> None:
    fill_log(target.tenant.pk, EVENTS, recorded_at=LONG_AGO, size=SIZE)
    with target.subscribe({"from": _sealed(target, 0)}, receive_buffer=4096) as stream:
        stream.opened()
        first = stream.events(1)[0].message["event"]["n"]
        # The client is blocked, and the stream has not yet read most of the log.
        prune_log(DueLog(target.tenant.pk, 0, EVENTS))
        rest: list[Block] = list(stream.blocks(within=15.0))
    numbers = [first, *(block.message["event"]["n"] for block in rest if block.event == "user.updated")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) < EVENTS
    assert rest[-1].event == "error"
    error = rest[-1].message["error"]
    assert (error["code"], error["message"], error["offset"]) == ("cursor_expired", MESSAGE, _sealed(target, len(numbers)))
    assert stream.ended_cleanly
    document = _refused(target, {"from": error["offset"]})
    assert document["earliest_offset"] == _sealed(target, EVENTS)
