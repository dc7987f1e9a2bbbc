"""A dispatch adds a delivery to a lane while a worker finds the lane empty. The tests set the order of the steps of both transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import dispatch, lanes
from provisioning.models import Delivery, Lane
from provisioning.runs.outcomes import Claim, Success
from tests.deadlines import eventually
from tests.provisioning.engine.logs import append_events

DONE = Success(is_skipped=False, is_written=True, duration_ms=1.0)


class Paused(threading.Thread):
    """A thread that does its work in a transaction, and commits it when the test calls `finish`."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.is_done = threading.Event()
        self.may_commit = threading.Event()
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with transaction.atomic():
                self._work()
                self.is_done.set()
                self.may_commit.wait(20)
        except Exception as error:
            self.error = error
        finally:
            connections.close_all()

    def finish(self) -> None:
        self.may_commit.set()
        self.join(20)
        assert not self.is_alive()
        assert self.error is None


def _a_session_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


@pytest.fixture
def last_claim(tenant: Tenant, stream: EventStream) -> Claim:
    """Return the claim of the only delivery in a lane. The log contains a second event for the lane, which is not dispatched yet."""
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    claim = lanes.claim_named(stream.pk, "user:a")
    assert isinstance(claim, Claim)
    append_events(tenant, ["user:a"])
    return claim


def _assert_second_event_is_claimable(stream: EventStream) -> None:
    assert Lane.objects.filter(stream_id=stream.pk).count() == 1
    assert isinstance(lanes.claim_named(stream.pk, "user:a"), Claim)


def test_deleting_an_empty_lane_waits_for_the_dispatch_that_adds_to_it(stream: EventStream, last_claim: Claim) -> None:
    filling = Paused(lambda: dispatch.dispatch_stream(stream.pk))
    assert filling.is_done.wait(10)
    settling = Paused(lambda: lanes.settle(last_claim, DONE, go_on=False))
    eventually(_a_session_waits_for_a_lock)

    filling.finish()
    settling.finish()

    _assert_second_event_is_claimable(stream)


def test_a_worker_sees_deliveries_that_a_dispatch_committed_during_its_wait(stream: EventStream, last_claim: Claim) -> None:
    steps: list[lanes.Step] = []
    filling = Paused(lambda: dispatch.dispatch_stream(stream.pk))
    assert filling.is_done.wait(10)
    settling = Paused(lambda: steps.append(lanes.settle(last_claim, DONE, go_on=True)))
    eventually(_a_session_waits_for_a_lock)

    filling.finish()
    settling.finish()

    (step,) = steps
    assert step.next is not None
    assert (step.next.lane_id, step.next.attempt) == (last_claim.lane_id, 1)
    assert step.next.event_id != last_claim.event_id


@pytest.mark.parametrize("go_on", [False, True])
def test_a_dispatch_recreates_a_lane_that_a_worker_has_just_deleted(stream: EventStream, last_claim: Claim, go_on: bool) -> None:
    settling = Paused(lambda: lanes.settle(last_claim, DONE, go_on=go_on))
    assert settling.is_done.wait(10)
    filling = Paused(lambda: dispatch.dispatch_stream(stream.pk))
    eventually(_a_session_waits_for_a_lock)

    settling.finish()
    filling.finish()

    _assert_second_event_is_claimable(stream)


def test_only_one_of_two_workers_gets_the_claim_of_a_lane(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    claims: list[object] = []
    first = Paused(lambda: claims.append(lanes.claim_named(stream.pk, "user:a")))
    assert first.is_done.wait(10)
    second = Paused(lambda: claims.append(lanes.claim_named(stream.pk, "user:a")))
    eventually(_a_session_waits_for_a_lock)

    first.finish()
    second.finish()

    claim, nothing = claims
    assert (type(claim), nothing) == (Claim, None)
    assert Delivery.objects.get(stream_id=stream.pk).attempts == 1


def test_a_claim_of_the_oldest_lane_skips_a_lane_locked_by_a_dispatch(tenant: Tenant, stream: EventStream, last_claim: Claim) -> None:
    filling = Paused(lambda: dispatch.dispatch_stream(stream.pk))
    assert filling.is_done.wait(10)

    assert lanes.claim_oldest(stream.pk) is None

    filling.finish()
    assert lanes.settle(last_claim, DONE, go_on=True).next is not None
