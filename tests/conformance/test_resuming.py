"""A client that resumes with its last offset gets the remaining events: no gap, no duplicate, the same bytes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

import pytest

from events.models import Head, LogEntry
from tests.conformance.target import Target

TYPES = ("user.created", "user.updated", "connection.updated", "user.deleted")


def _some(count: int) -> tuple[str, ...]:
    return tuple(islice(cycle(TYPES), count))


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_stream_from_any_offset_starts_with_the_event_after_the_offset(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        ids = target.write(*_some(9))
        blocks = stream.events(9)
    token = target.token()
    offsets = [start, *(block.id for block in blocks)]
    for seen, offset in enumerate(offsets):
        with target.subscribe({"from": offset}, token=token) as stream:
            stream.opened()
            rest = stream.events(9 - seen)
            assert [block.message["event"]["id"] for block in rest] == ids[seen:]
            assert [(block.id, block.data) for block in rest] == [(block.id, block.data) for block in blocks[seen:]]


@pytest.mark.transport
def test_clients_that_resume_after_a_cut_at_any_byte_receive_exactly_the_log(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        ids = target.write(*_some(5))
        stream.events(5)
        session = stream.body
    token = target.token()
    rests: dict[str | None, list[str]] = {}
    for cut in range(len(session) + 1):
        # Every client discards an incomplete block, so only complete blocks have advanced its cursor.
        whole = session[:cut].rpartition(b"\n\n")[0].decode().split("\n\n")
        seen = [line[4:] for block in whole for line in block.split("\n") if line.startswith("id: ")]
        delivered = [block for block in whole if block.startswith("event: ") and not block.startswith("event: offset-only")]
        last = seen[-1] if seen else start
        if last not in rests:
            with target.subscribe(token=token, headers={"Last-Event-ID": last}) as again:
                again.opened()
                rests[last] = [block.message["event"]["id"] for block in again.events(5 - len(delivered))]
        assert rests[last] == ids[len(delivered) :]


@pytest.mark.transport
def test_a_resumed_stream_continues_with_new_events_without_a_gap(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    first = target.write(*_some(300), padding=1000)
    with target.subscribe({"from": start}) as stream:
        stream.opened()
        second = target.write(*_some(50))
        blocks = stream.events(350)
        third = target.write(*_some(3))
        blocks += stream.events(3)
    assert [block.message["event"]["id"] for block in blocks] == first + second + third


def test_a_stream_from_a_timestamp_starts_with_the_first_event_recorded_at_or_after_the_timestamp(target: Target) -> None:
    ids = target.write(*_some(3))
    recorded = LogEntry.objects.filter(tenant_id=target.tenant.pk).earliest("position").recorded_at
    with target.subscribe({"from_timestamp": _stamp(recorded)}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(3)] == ids
    with target.subscribe({"from_timestamp": _stamp(recorded - timedelta(days=400)).lower()}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(3)] == ids


def test_a_stream_from_a_future_timestamp_delivers_no_event_recorded_before_the_timestamp(target: Target) -> None:
    target.write("user.created")
    with target.subscribe({"from_timestamp": _stamp(datetime.now(UTC) + timedelta(hours=1))}) as stream:
        first = stream.opened()
        target.write("user.updated")
        block = stream.block()
        while block.event != "offset-only" or block.id == first.id:
            assert block.event in {"", "offset-only"}
            block = stream.block()


@pytest.mark.transport
def test_last_event_id_has_precedence_over_every_start_in_the_query(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        ids = target.write(*_some(4))
        blocks = stream.events(4)
    for query in ({"from": start}, {"from_timestamp": "2020-01-01T00:00:00Z"}, {"from": start, "from_timestamp": "2020-01-01T00:00:00Z"}):
        with target.subscribe(query, headers={"Last-Event-ID": blocks[2].id}) as stream:
            stream.opened()
            assert [block.message["event"]["id"] for block in stream.events(1)] == ids[3:]


def test_empty_parameters_count_as_absent(target: Target) -> None:
    target.write("user.created")
    with target.subscribe("from=&from_timestamp=&event_type=", headers={"Last-Event-ID": ""}) as stream:
        assert stream.opened().id
        [expected] = target.write("user.updated")
        assert stream.events(1)[0].message["event"]["id"] == expected


def _pruned_through(target: Target, position: int) -> None:
    entry = LogEntry.objects.get(tenant_id=target.tenant.pk, position=position)
    Head.objects.filter(pk=target.tenant.pk).update(floor=position, floor_recorded_at=entry.recorded_at)
    LogEntry.objects.filter(tenant_id=target.tenant.pk, position__lte=position).delete()


def test_a_cursor_below_the_floor_has_expired_and_a_cursor_at_the_floor_is_valid(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        ids = target.write(*_some(4))
        offsets = [block.id for block in stream.events(4)]
    _pruned_through(target, 2)
    for gone in (start, offsets[0]):
        with target.subscribe({"from": gone}) as stream:
            assert stream.status == 410
            assert stream.document()["errorCode"] == "cursor_expired"
    with target.subscribe({"from": offsets[1]}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(2)] == ids[2:]


def test_a_timestamp_has_expired_only_when_an_event_at_or_after_the_timestamp_was_pruned(target: Target) -> None:
    target.write("user.created")
    LogEntry.objects.filter(tenant_id=target.tenant.pk, position=1).update(recorded_at=datetime(2026, 1, 1, tzinfo=UTC))
    ids = target.write("user.updated")
    _pruned_through(target, 1)
    with target.subscribe({"from_timestamp": "2026-01-01T00:00:00Z"}) as stream:
        assert stream.status == 410
    with target.subscribe({"from_timestamp": "2026-01-01T00:00:01Z"}) as stream:
        stream.opened()
        assert stream.events(1)[0].message["event"]["id"] == ids[0]


def test_a_cursor_above_the_head_is_refused_and_starts_a_new_epoch(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        target.write(*_some(3))
        offsets = [block.id for block in stream.events(3)]
    # Simulate a restore: the log ends before a position that a client has seen.
    LogEntry.objects.filter(tenant_id=target.tenant.pk, position=3).delete()
    Head.objects.filter(pk=target.tenant.pk).update(position=2)
    epoch = target.head().epoch
    with target.subscribe({"from": offsets[2]}) as stream:
        assert stream.status == 410
    assert target.head().epoch > epoch
    with target.subscribe({"from": offsets[0]}) as stream:
        assert stream.status == 410, "a cursor is accepted that may point into the lost events"


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.transport
def test_a_large_event_arrives_complete(target: Target, extra: int) -> None:
    with target.subscribe() as stream:
        stream.opened()
        ids = target.write("user.updated", padding=400_000 + extra) + target.write("user.deleted")
        assert [block.message["event"]["id"] for block in stream.events(2)] == ids
