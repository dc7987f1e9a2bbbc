"""The opening of a stream, and the headers of every response."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from events.models import Head, LogEntry
from tests.conformance.target import Target


@pytest.mark.remote
@pytest.mark.transport
def test_a_stream_opens_with_a_comment_a_retry_delay_and_the_current_offset(target: Target) -> None:
    with target.subscribe() as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store, no-transform"
        # nginx follows this header and removes it.
        assert stream.headers.get("x-accel-buffering", "no") == "no"
        assert stream.headers["content-encoding"] == "identity"
        assert {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} <= stream.headers.keys()
        first = stream.opened()
        assert re.match(rb":connected\n\nretry: [0-9]+\n\nevent: offset-only\nid: ", stream.body)
        assert first.message == {"type": "offset-only", "offset": first.id}
        assert first.id is not None
        assert len(first.id) <= 64


def test_a_stream_without_a_start_delivers_no_event_from_before_the_connection(target: Target) -> None:
    target.write("user.created", "user.updated")
    with target.subscribe() as stream:
        stream.opened()
        [expected] = target.write("user.deleted")
        [event] = stream.events(1)
        assert event.message["event"]["id"] == expected


@pytest.mark.transport
def test_a_message_contains_type_and_offset_and_the_stored_envelope(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        [event_id] = target.write("connection.created")
        [block] = stream.events(1)
        assert list(block.message) == ["type", "offset", "event"]
        assert block.event == block.message["type"] == block.message["event"]["type"] == "connection.created"
        assert block.id == block.message["offset"]
        envelope = block.message["event"]
        assert list(envelope) == ["specversion", "type", "source", "id", "time", "data", "x0tenant", "x0stream"]
        assert (envelope["id"], envelope["x0tenant"], envelope["x0stream"]) == (event_id, target.tenant.pk, target.head().stream_id)


def test_the_floor_header_is_a_cursor_that_delivers_every_retained_event(target: Target) -> None:
    ids = target.write("user.created", "user.updated")
    with target.subscribe() as stream:
        floor = stream.headers["x-events-floor"]
        assert "x-events-floor-time" not in stream.headers, "the header is present although no event was pruned"
    with target.subscribe({"from": floor}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(2)] == ids


def test_the_floor_time_is_the_earliest_accepted_timestamp(target: Target) -> None:
    target.write("user.created")
    dropped_at = LogEntry.objects.get(tenant_id=target.tenant.pk).recorded_at
    LogEntry.objects.filter(tenant_id=target.tenant.pk).delete()
    Head.objects.filter(pk=target.tenant.pk).update(floor=1, floor_recorded_at=dropped_at)
    with target.subscribe() as stream:
        time = stream.headers["x-events-floor-time"]
        start = stream.opened().id
        assert stream.headers["x-events-floor"] == start
    with target.subscribe({"from_timestamp": time}) as stream:
        assert stream.status == 200
    earlier = datetime.fromisoformat(time) - timedelta(seconds=1)
    with target.subscribe({"from_timestamp": earlier.strftime("%Y-%m-%dT%H:%M:%SZ")}) as stream:
        assert stream.status == 410


def test_a_cursor_that_will_soon_expire_gets_a_warning_after_the_opening(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    target.write("user.created", "user.updated")
    _record_days_ago(target, 28)
    with target.subscribe({"from": start}) as stream:
        stream.opened()
        [comment] = stream.block().comments
        assert comment.startswith("warning=cursor_expiring next_event_at=")
        assert [block.event for block in stream.events(2)] == ["user.created", "user.updated"]
    _record_days_ago(target, 26)
    with target.subscribe({"from": start}) as stream:
        stream.opened()
        assert stream.block().event == "user.created"


def test_a_cursor_at_the_end_of_an_old_log_gets_no_warning(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        target.write("user.created")
        [last] = stream.events(1)
    _record_days_ago(target, 29)
    with target.subscribe({"from": last.id}) as stream:
        stream.opened()
        assert stream.block().comments[0] == "heartbeat"


def _record_days_ago(target: Target, days: int) -> None:
    LogEntry.objects.filter(tenant_id=target.tenant.pk).update(recorded_at=datetime.now(UTC) - timedelta(days=days))
