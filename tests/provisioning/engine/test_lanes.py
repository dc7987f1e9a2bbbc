"""How lanes and deliveries change their states: claims, outcomes, releases and lost leases. The tests use committed data."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import Event, EventStream
from foundation.database.statements import prepare
from identity.models import Tenant
from provisioning.engine import dispatch, lane_rows, lanes
from provisioning.models import Attempt, DeadLetter, Delivery, Lane
from provisioning.runs.outcomes import Claim, Failure, LeaseLost, NotDue, Success
from tests.factories.models.events import EventStreamFactory
from tests.provisioning.engine.logs import append_events

DONE = Success(is_skipped=False, is_written=True, duration_ms=1.0)
SKIPPED = Success(is_skipped=True, is_written=False, duration_ms=1.0, reason="no userName")
BUSY = Failure("transient", "503 from the server", duration_ms=2.0, status=503, exchanges=[{"path": "/Users"}])


@pytest.fixture(autouse=True)
def _three_attempts(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = [10.0, 100.0]
    settings.DELIVERY_RETRY_JITTER = 0.0


def _claimed(stream: EventStream, key: str = "user:a") -> Claim:
    claim = lanes.claim_named(stream.pk, key)
    assert isinstance(claim, Claim)
    return claim


def _queue(tenant: Tenant, *keys: str) -> list[Event]:
    events = append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)
    return events


def _forward(stream: EventStream, seconds: float) -> None:
    """Move the times in the stream's lanes into the past by a number of seconds, as if this time had passed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE provisioning_lane SET not_before = not_before - make_interval(secs => %(s)s), "
            "lease_until = lease_until - make_interval(secs => %(s)s), nudged_until = nudged_until - make_interval(secs => %(s)s) "
            "WHERE stream_id = %(stream)s",
            {"s": seconds, "stream": stream.pk},
        )


def _assert_discarded(claim: Claim) -> None:
    before = list(Delivery.objects.filter(pk=claim.delivery_id).values()), list(Attempt.objects.filter(delivery=claim.delivery_id).values())
    with pytest.raises(LeaseLost):
        lanes.settle(claim, DONE, go_on=False)
    assert lanes.settle(claim, DONE, go_on=True).is_discarded
    after = list(Delivery.objects.filter(pk=claim.delivery_id).values()), list(Attempt.objects.filter(delivery=claim.delivery_id).values())
    assert before == after


def _state(event: Event, stream: EventStream) -> str:
    return Delivery.objects.get(stream_id=stream.pk, event=event.pk).state


def test_a_lane_is_delivered_in_order_and_then_deleted(tenant: Tenant, stream: EventStream) -> None:
    events = _queue(tenant, "user:a", "user:a", "user:a")
    claim: Claim | None = _claimed(stream)
    seen = []
    while claim is not None:
        seen.append(claim.event_id)
        claim = lanes.settle(claim, DONE, go_on=True).next

    assert seen == [event.event_id for event in events]
    assert not Lane.objects.filter(stream_id=stream.pk).exists()
    assert {_state(event, stream) for event in events} == {"delivered"}


def test_a_claimed_lane_cannot_be_claimed_again(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a", "user:a")
    _claimed(stream)

    assert lanes.claim_named(stream.pk, "user:a") is None
    assert lanes.claim_oldest(stream.pk) is None


def test_an_attempt_is_counted_when_it_starts(tenant: Tenant, stream: EventStream) -> None:
    (event,) = _queue(tenant, "user:a")
    claim = _claimed(stream)

    delivery = Delivery.objects.get(event=event.pk)
    assert (claim.attempt, delivery.attempts, delivery.series_attempts) == (1, 1, 1)
    assert delivery.first_attempt_at == delivery.last_attempt_at == claim.started_at


def test_a_worker_that_ends_its_turn_releases_its_lane(tenant: Tenant, stream: EventStream) -> None:
    first, second = _queue(tenant, "user:a", "user:a")

    assert lanes.settle(_claimed(stream), DONE, go_on=False) == lanes.Step(is_waiting=True)
    last = _claimed(stream)
    assert (last.event_id, _state(first, stream)) == (second.event_id, "delivered")
    assert lanes.settle(last, DONE, go_on=False) == lanes.Step(is_waiting=False)


def test_a_worker_continues_with_the_oldest_lane_after_its_own_lane(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    _queue(tenant, "user:b")
    _queue(tenant, "user:c")

    step = lanes.settle(_claimed(stream, "user:c"), DONE, go_on=True)

    assert step.next is not None
    assert step.next.key == "user:a"


def test_a_skipped_event_is_settled_with_a_reason(tenant: Tenant, stream: EventStream) -> None:
    (event,) = _queue(tenant, "user:a")

    lanes.settle(_claimed(stream), SKIPPED, go_on=True)

    delivery = Delivery.objects.get(event=event.pk)
    assert (delivery.state, delivery.reason, delivery.is_written) == ("skipped", "no userName", False)


def test_a_failure_pauses_its_lane_and_no_later_event_overtakes_it(tenant: Tenant, stream: EventStream) -> None:
    first, _ = _queue(tenant, "user:a", "user:a")

    step = lanes.fail(_claimed(stream), BUSY, go_on=True)

    assert step.retry_in == 10.0
    waiting = lanes.claim_named(stream.pk, "user:a")
    assert isinstance(waiting, NotDue)
    assert 9 < waiting.seconds <= 10
    assert lanes.claim_oldest(stream.pk) is None
    _forward(stream, 10)
    assert _claimed(stream).event_id == first.event_id


def test_an_event_becomes_a_dead_letter_after_the_last_attempt_and_its_lane_continues(tenant: Tenant, stream: EventStream) -> None:
    first, second = _queue(tenant, "user:a", "user:a")
    for _ in range(2):
        lanes.fail(_claimed(stream), BUSY, go_on=True)
        _forward(stream, 1000)

    step = lanes.fail(_claimed(stream), BUSY, go_on=True)

    assert step.next is not None
    assert step.next.event_id == second.event_id
    letter = DeadLetter.objects.get(event_id=first.event_id)
    assert (letter.state, letter.attempts, letter.reason, letter.error_class, letter.error_status) == (
        "open",
        3,
        "503 from the server",
        "transient",
        503,
    )
    assert bytes(letter.body or b"") == bytes(Event.objects.get(pk=first.pk).body)
    tries = Attempt.objects.filter(delivery=letter.delivery_id).order_by("number")
    assert [(one.number, one.outcome, one.exchanges) for one in tries] == [(n, "failed", [{"path": "/Users"}]) for n in (1, 2, 3)]
    assert [one.retry_at is None for one in tries] == [False, False, True]


def test_retry_after_extends_the_pause_of_a_lane(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")

    assert lanes.fail(_claimed(stream), replace(BUSY, retry_after=40.0), go_on=True).retry_in == 40.0


def test_an_outcome_after_the_end_of_the_lease_is_discarded(tenant: Tenant, stream: EventStream) -> None:
    (event,) = _queue(tenant, "user:a")
    claim = _claimed(stream)
    _forward(stream, 1000)

    with pytest.raises(LeaseLost):
        lanes.settle(claim, DONE, go_on=False)
    with pytest.raises(LeaseLost):
        lanes.fail(claim, BUSY, go_on=True)
    assert not Attempt.objects.filter(delivery__event=event.pk).exists()
    step = lanes.settle(claim, DONE, go_on=True)

    # The late worker can continue, and claims the delivery again with a new token.
    assert step.is_discarded
    assert step.next is not None
    assert (step.next.event_id, step.next.attempt) == (event.event_id, 2)
    assert _state(event, stream) == "todo"
    assert Attempt.objects.get(delivery__event=event.pk).outcome == "lost"


def test_an_outcome_with_another_token_is_discarded(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    claim = _claimed(stream)
    _forward(stream, 1000)
    successor = _claimed(stream)

    _assert_discarded(claim)
    _assert_discarded(replace(successor, token=uuid.uuid4()))
    assert lanes.settle(successor, DONE, go_on=True).next is None


def test_a_worker_with_an_old_claim_cannot_settle_a_recreated_lane(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    zombie = _claimed(stream)
    _forward(stream, 1000)
    lanes.settle(_claimed(stream), DONE, go_on=True)
    _queue(tenant, "user:a")
    _claimed(stream)

    _assert_discarded(zombie)


def test_a_lane_with_an_expired_lease_is_claimed_and_a_lost_attempt_is_recorded(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    lost = _claimed(stream)
    _forward(stream, 1000)

    claim = lanes.claim_oldest(stream.pk)

    assert claim is not None
    assert (claim.event_id, claim.attempt) == (lost.event_id, 2)
    assert Attempt.objects.get(delivery=claim.delivery_id).outcome == "lost"


def test_an_event_that_kills_every_worker_becomes_a_dead_letter(tenant: Tenant, stream: EventStream) -> None:
    first, second = _queue(tenant, "user:a", "user:a")
    for _ in range(3):
        assert _claimed(stream).event_id == first.event_id
        _forward(stream, 1000)

    claim = _claimed(stream)

    assert claim.event_id == second.event_id
    letter = DeadLetter.objects.get(event_id=first.event_id)
    assert (letter.error_class, letter.attempts) == ("lost", 3)
    assert Attempt.objects.filter(delivery=letter.delivery_id, outcome="lost").count() == 3


def test_an_event_pruned_from_the_log_becomes_a_dead_letter(tenant: Tenant, stream: EventStream) -> None:
    first, second = _queue(tenant, "user:a", "user:a")
    Event.objects.filter(pk=first.pk).delete()

    assert _claimed(stream).event_id == second.event_id
    assert DeadLetter.objects.get(event_id=first.event_id).error_class == "missing"


def test_a_held_or_disabled_stream_is_not_claimed_and_later_continues_in_order(tenant: Tenant, stream: EventStream) -> None:
    first, _ = _queue(tenant, "user:a", "user:a")
    for field, stopped, running in (("held_since", "2026-01-01T00:00:00Z", None), ("status", "disabled", "enabled")):
        setattr(stream, field, stopped)
        stream.save(update_fields=[field])
        assert lanes.claim_named(stream.pk, "user:a") is None
        assert lanes.claim_oldest(stream.pk) is None
        setattr(stream, field, running)
        stream.save(update_fields=[field])

    assert _claimed(stream).event_id == first.event_id


def test_a_stream_held_during_a_turn_keeps_its_waiting_deliveries(tenant: Tenant, stream: EventStream) -> None:
    _, second = _queue(tenant, "user:a", "user:a")
    claim = _claimed(stream)
    stream.held_since = claim.started_at
    stream.save(update_fields=["held_since"])

    assert lanes.settle(claim, DONE, go_on=True).next is None

    stream.held_since = None
    stream.save(update_fields=["held_since"])
    assert _claimed(stream).event_id == second.event_id


def test_a_released_claim_does_not_use_up_an_attempt(tenant: Tenant, stream: EventStream) -> None:
    (event,) = _queue(tenant, "user:a")

    for _ in range(5):
        lanes.release(_claimed(stream), replace(BUSY, error_class="misconfigured"))

    delivery = Delivery.objects.get(event=event.pk)
    assert (delivery.state, delivery.attempts, delivery.series_attempts) == ("todo", 5, 0)


def test_a_released_lane_is_due_and_may_be_nudged_at_once(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    lanes.release(_claimed(stream), BUSY)
    lane = Lane.objects.get(stream_id=stream.pk)
    assert lane.nudged_until is not None
    assert max(lane.not_before, lane.nudged_until) <= timezone.now()


def test_a_pausing_lane_is_nudged_again_only_after_its_pause(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a")
    lanes.fail(_claimed(stream), BUSY, go_on=False)
    lane = Lane.objects.get(stream_id=stream.pk)
    assert lane.nudged_until is not None
    later = (lane.nudged_until - lane.not_before).total_seconds()
    assert later == pytest.approx(dispatch.NUDGE_GRACE_SECONDS, abs=0.5)


def test_a_worker_continues_with_another_lane_if_its_next_event_was_pruned(tenant: Tenant, stream: EventStream) -> None:
    _, pruned, other = _queue(tenant, "user:a", "user:a", "user:b")
    claim = _claimed(stream)
    Event.objects.filter(pk=pruned.pk).delete()

    following = lanes.settle(claim, DONE, go_on=True).next

    assert following is not None
    assert following.event_id == other.event_id
    assert _state(pruned, stream) == "dead"


def test_at_most_the_given_number_of_waiting_deliveries_become_dead_letters(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, "user:a", "user:a", "user:b")
    assert [lanes.bury_waiting(stream.pk, BUSY, limit=2) for _ in range(3)] == [2, 1, 0]
    assert DeadLetter.objects.filter(stream_id=stream.pk).count() == 3


def test_two_streams_of_a_tenant_do_not_wait_for_each_other(tenant: Tenant, stream: EventStream) -> None:
    other = EventStreamFactory.create(tenant_id=tenant.pk, subscriptions=["user.updated"], destination_type="recorder")
    _queue(tenant, "user:a")

    lanes.fail(_claimed(stream), BUSY, go_on=True)

    assert _claimed(other).stream_id == other.pk


@pytest.mark.parametrize(
    "statement", [lane_rows.TAKE_THIS, lane_rows.TAKE_OLDEST, lane_rows.TAKE_NEXT.call], ids=["this", "oldest", "next"]
)
def test_the_columns_of_a_claim_statement_are_the_fields_of_the_claimed_row(stream: EventStream, statement: str) -> None:
    values: dict[str, Any] = {"lane": -1, "token": uuid.uuid4(), "stream": stream.pk, "probe": False, "lease": 1.0, "most": 1}
    with connection.cursor() as cursor:
        prepare(cursor, [lane_rows.TAKE_NEXT])
        cursor.execute(statement, values)
        assert tuple(column.name for column in cursor.description) == lane_rows.Taken._fields


@pytest.mark.parametrize(
    "act",
    [
        lambda claim: lanes.fail(claim, BUSY, go_on=False),
        lambda claim: lanes.fail(claim, BUSY, go_on=True),
        lambda claim: lanes.release(claim, BUSY),
        lambda claim: lanes.put_off(claim, seconds=60),
        lambda claim: lanes.give_back(claim),
        lambda claim: lanes.give_back(claim, is_settled=True),
    ],
    ids=["fail", "fail and continue", "release", "postpone", "give back", "give back a settled delivery"],
)
def test_a_worker_cannot_change_a_lane_that_another_worker_has_claimed(
    tenant: Tenant, stream: EventStream, act: Callable[[Claim], object]
) -> None:
    _queue(tenant, "user:a", "user:a")
    stale = _claimed(stream)
    _forward(stream, 1000)
    successor = _claimed(stream)
    before = _rows(stream)

    with pytest.raises(LeaseLost):
        act(stale)

    assert _rows(stream) == before
    # Only the worker with the claim can write an outcome.
    lanes.settle(successor, DONE, go_on=False)


def test_a_delivery_at_the_rate_limit_is_postponed_without_an_attempt(tenant: Tenant, stream: EventStream) -> None:
    (event,) = _queue(tenant, "user:a")
    assert lane_rows.due_key(stream.pk) == "user:a"
    assert lanes.put_off(_claimed(stream), seconds=60) == lanes.Step(retry_in=60)
    assert lane_rows.due_key(stream.pk) is None
    assert not Attempt.objects.filter(delivery__stream_id=stream.pk).exists()
    _forward(stream, 61)
    assert lane_rows.due_key(stream.pk) == "user:a"
    claim = _claimed(stream)
    assert (Delivery.objects.get(pk=claim.delivery_id).event_id, claim.series_attempt) == (event.event_id, 1)


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_lane_keeps_its_position_in_the_queue_if_its_claim_is_given_back(
    tenant: Tenant, stream: EventStream, *, is_settled: bool
) -> None:
    first, second = _queue(tenant, "user:a", "user:b")
    claim = _claimed(stream)
    if is_settled:
        Delivery.objects.filter(pk=claim.delivery_id).update(state=Delivery.State.DELIVERED)
    lanes.give_back(claim, is_settled=is_settled)
    assert lane_rows.due_key(stream.pk) == ("user:b" if is_settled else "user:a")
    attempts = dict(Delivery.objects.filter(stream_id=stream.pk).values_list("event_id", "attempts"))
    assert attempts == {first.event_id: int(is_settled), second.event_id: 0}


def _rows(stream: EventStream) -> list[tuple[object, ...]]:
    """Return the values of all lanes, deliveries and attempts of the stream."""
    lanes_of = Lane.objects.filter(stream_id=stream.pk).order_by("pk").values_list()
    deliveries = Delivery.objects.filter(stream_id=stream.pk).order_by("pk").values_list()
    attempts = Attempt.objects.filter(delivery__stream_id=stream.pk).order_by("pk").values_list()
    return [*lanes_of, *deliveries, *attempts]
