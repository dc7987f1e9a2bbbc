"""Which streams and deliveries hold back events, so that the events stay in the log after the retention period."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from events.log import restoring, retention
from events.log.retention import Pruned
from events.models import Event, EventStream, Head
from identity.models import Tenant
from provisioning.dead_letters.redelivery import Order, redeliver_letters
from provisioning.engine import delivering, dispatch, lanes, sweeper
from provisioning.engine.streams import disable_stream, enable_stream
from provisioning.models import DeadLetter, Delivery, Lane
from provisioning.runs.failures import DataFailure
from provisioning.runs.outcomes import Claim, Success
from tests.events.long_logs import remaining
from tests.factories.models.identity import TenantFactory
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events

EVERYTHING = 4


@pytest.fixture(autouse=True)
def no_retries(settings: object) -> None:
    settings.DELIVERY_RETRY_DELAYS = []  # type: ignore[attr-defined]  # pytest-django's settings


def _old_events(tenant: Tenant, *, keys: str = "abcd") -> list[Event]:
    """Append one event for each key. The events are older than the retention period."""
    events = append_events(tenant, [f"user:{key}" for key in keys])
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE events_logentry SET recorded_at = %s WHERE tenant_id = %s", [datetime.now(UTC) - timedelta(days=40), tenant.pk]
        )
    return events


def _pruned(tenant: Tenant, *, is_dry_run: bool = False) -> Pruned:
    [done] = retention.prune(tenant.pk, is_dry_run=is_dry_run)
    return done


def _deliver_all(stream: EventStream, *, keys: str) -> None:
    for key in keys:
        delivering.deliver_lane(stream.pk, f"user:{key}")


def _settle(stream: EventStream, *, keys: str) -> None:
    """Settle the first delivery of each of these lanes as delivered."""
    for key in keys:
        claim = lanes.claim_named(stream.pk, f"user:{key}")
        assert isinstance(claim, Claim)
        lanes.settle(claim, Success(is_skipped=False, duration_ms=1.0, is_written=True), go_on=False)


def test_an_enabled_stream_holds_back_the_events_that_it_has_not_read(tenant: Tenant, stream: EventStream) -> None:
    _old_events(tenant)
    EventStream.objects.of(tenant.pk).update(position=1)
    done = _pruned(tenant)
    assert (done.count, done.held_back) == (1, 3)
    assert [hold.holder for hold in done.holds] == [f"event stream {stream.pk} (behind the log)"]


def test_the_event_of_a_waiting_delivery_is_kept_until_it_is_delivered(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    events = _old_events(tenant)
    dispatch.dispatch_tenant(tenant.pk)
    _settle(stream, keys="ab")
    done = _pruned(tenant)
    assert (done.count, done.held_back) == (2, 2)
    assert [hold.holder for hold in done.holds] == [f"event stream {stream.pk} (waiting deliveries)"]

    _deliver_all(stream, keys="cd")
    assert recorder.event_ids == [event.event_id for event in events[2:]]
    assert (_pruned(tenant).count, remaining(tenant.pk)) == (2, (EVERYTHING, EVERYTHING, [], 0))


def test_pruning_reports_the_positions_that_it_keeps_and_the_streams_that_need_them(
    tenant: Tenant, stream: EventStream, caplog: pytest.LogCaptureFixture
) -> None:
    _old_events(tenant)
    out = StringIO()
    with caplog.at_level(logging.WARNING, logger="events.log.retention"):
        call_command("events", "prune", "--tenant", tenant.pk, stdout=out)
    told = f"{tenant.pk}: 4 positions are kept beyond their retention for event stream {stream.pk} (behind the log) at 0"
    assert told in caplog.messages
    assert told in out.getvalue()
    assert "held back: 4" in out.getvalue()


def test_a_dead_letter_has_a_copy_of_its_event_and_does_not_delay_pruning(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    [event] = _old_events(tenant, keys="a")
    body = bytes(event.body)
    recorder.answers["user:a"] = [DataFailure("too long")]
    dispatch.dispatch_tenant(tenant.pk)
    _deliver_all(stream, keys="a")
    letter = DeadLetter.objects.get(stream_id=stream.pk)
    assert (_pruned(tenant).held_back, remaining(tenant.pk)[3]) == (0, 0)
    assert bytes(DeadLetter.objects.get(pk=letter.pk).body or b"") == body

    redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk], order=Order("ada@example.test"))
    _deliver_all(stream, keys="a")
    assert recorder.event_ids == [event.event_id, event.event_id]
    assert Delivery.objects.get(stream_id=stream.pk).state == Delivery.State.DELIVERED


def test_a_waiting_redelivery_has_a_copy_of_its_event_and_does_not_delay_pruning(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    _old_events(tenant, keys="a")
    recorder.answers["user:a"] = [DataFailure("too long")]
    dispatch.dispatch_tenant(tenant.pk)
    _deliver_all(stream, keys="a")
    redeliver_letters(tenant_id=tenant.pk, letter_ids=[DeadLetter.objects.get(stream_id=stream.pk).pk], order=Order("ada@example.test"))
    done = _pruned(tenant)
    assert (done.count, done.held_back) == (1, 0)
    _deliver_all(stream, keys="a")
    assert Delivery.objects.get(stream_id=stream.pk).state == Delivery.State.DELIVERED


def test_a_held_stream_holds_back_its_events_until_the_maximum_hold_time(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: object
) -> None:
    _old_events(tenant)
    dispatch.dispatch_tenant(tenant.pk)
    EventStream.objects.of(tenant.pk).update(held_since=datetime.now(UTC) - timedelta(days=6), held_reason="away")
    done = _pruned(tenant)
    assert (done.count, done.held_back) == (0, EVERYTHING)
    assert "held since" in done.holds[0].holder

    settings.HOLD_MAX_SECONDS = 5 * 86400.0  # type: ignore[attr-defined]
    sweeper.sweep()
    assert (_pruned(tenant).count, remaining(tenant.pk)[3]) == (EVERYTHING, 0)
    assert {bytes(letter.body or b"")[:1] for letter in DeadLetter.objects.filter(stream_id=stream.pk)} == {b"{"}


def test_waiting_deliveries_of_a_disabled_stream_become_dead_letters_with_copies_when_events_are_pruned(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    events = _old_events(tenant)
    bodies = {event.event_id: bytes(event.body) for event in events}
    disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    assert Delivery.objects.filter(stream_id=stream.pk, state="todo").count() == EVERYTHING
    append_events(tenant, ["user:a"])

    assert (_pruned(tenant, is_dry_run=True).count, DeadLetter.objects.filter(stream_id=stream.pk).count()) == (EVERYTHING, 0)
    done = _pruned(tenant)

    assert (done.count, done.held_back) == (EVERYTHING, 0)
    letters = DeadLetter.objects.filter(stream_id=stream.pk)
    assert {letter.event_id: bytes(letter.body or b"") for letter in letters} == bodies
    assert not Lane.objects.filter(stream_id=stream.pk).exists()
    enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk for letter in letters], order=Order("ada@example.test"))
    _deliver_all(stream, keys="abcd")
    assert sorted(recorder.event_ids) == sorted(bodies)


def test_deliveries_of_a_disabled_stream_within_the_retention_keep_waiting(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _old_events(tenant, keys="ab")
    append_events(tenant, ["user:c"])
    disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    _pruned(tenant)
    assert list(Delivery.objects.filter(stream_id=stream.pk, state="todo").values_list("key", flat=True)) == ["user:c"]
    enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    _deliver_all(stream, keys="c")
    assert len(recorder.taken) == 1


def test_a_running_attempt_in_a_disabled_stream_keeps_its_event(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _old_events(tenant, keys="ab")
    dispatch.dispatch_tenant(tenant.pk)
    claim = lanes.claim_named(stream.pk, "user:b")
    assert isinstance(claim, Claim)
    disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    done = _pruned(tenant)
    assert (done.count, done.held_back) == (1, 1)

    lanes.settle(claim, Success(is_skipped=False, duration_ms=1.0, is_written=True), go_on=False)
    assert (_pruned(tenant).count, Delivery.objects.get(pk=claim.delivery_id).state) == (1, Delivery.State.DELIVERED)


def test_a_disabled_stream_without_deliveries_does_not_delay_pruning(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    _old_events(tenant)
    assert _pruned(tenant).count == EVERYTHING
    enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    append_events(tenant, ["user:z"])
    dispatch.dispatch_tenant(tenant.pk)
    _deliver_all(stream, keys="z")
    assert [key for key, _, _ in recorder.taken] == ["user:z"]


def test_deliveries_continue_from_the_position_of_the_stream_after_a_restore(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    events = append_events(tenant, ["user:a", "user:b", "user:c"])
    EventStream.objects.of(tenant.pk).update(position=2)
    restoring.start_over(tenant.pk)
    assert Head.objects.get(pk=tenant.pk).epoch > 1
    dispatch.dispatch_tenant(tenant.pk)
    _deliver_all(stream, keys="abc")
    assert recorder.event_ids == [events[2].event_id]


def test_a_stream_beyond_a_restored_head_returns_to_it_and_misses_no_event(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    """Only the log was restored to an older state.

    The stream and its deliveries are newer than the log. They contain positions and row ids that new events get again.
    """
    append_events(tenant, ["user:a", "user:b", "user:c"])
    dispatch.dispatch_tenant(tenant.pk)
    _settle(stream, keys="b")
    lost = Event.objects.get(log_entry__tenant_id=tenant.pk, log_entry__position=3)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM events_logentry WHERE tenant_id = %s AND position > 1", [tenant.pk])
        cursor.execute(
            "DELETE FROM events_event WHERE tenant_id = %s AND id <> (SELECT min(id) FROM events_event WHERE tenant_id = %s)",
            [tenant.pk] * 2,
        )
        cursor.execute("UPDATE events_head SET position = 1 WHERE tenant_id = %s", [tenant.pk])
    [state] = restoring.log_states(tenant.pk)
    assert state.effects == [
        "event streams beyond the head, set back to it: 1",
        "deliveries of events that the log no longer has, dropped with their dead letters: 2",
    ]

    restoring.start_over(tenant.pk)

    assert list(Delivery.objects.filter(stream_id=stream.pk).values_list("key", flat=True)) == ["user:a"]
    assert list(Lane.objects.filter(stream_id=stream.pk).values_list("key", flat=True)) == ["user:a"]
    [_, again] = append_events(tenant, ["user:x", "user:c"])
    # Give the row id of a lost event to a new event, as a restored sequence would.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_event SET id = %s WHERE id = %s", [lost.pk, again.pk])
        cursor.execute("UPDATE events_logentry SET event_id = %s WHERE event_id = %s", [lost.pk, again.pk])
    dispatch.dispatch_tenant(tenant.pk)
    _deliver_all(stream, keys="axc")
    assert sorted(key for key, _, _ in recorder.taken) == ["user:a", "user:c", "user:x"]


def test_a_restore_does_not_change_streams_of_another_tenant(tenant: Tenant, stream: EventStream) -> None:
    EventStream.objects.of(tenant.pk).update(position=9)
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    restoring.start_over(other.pk)
    assert EventStream.objects.of(tenant.pk).get(pk=stream.pk).position == 9
    assert Head.objects.get(pk=tenant.pk).epoch == 1
