"""Real workers, killed and frozen at every step: no event is lost or delivered out of order."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from identity.models import Tenant
from provisioning.engine import dispatch
from provisioning.engine.delivering import TURN_DELIVERIES
from provisioning.models import Attempt, Delivery, Lane
from tests.deadlines import eventually
from tests.faults.conftest import RedisServer
from tests.faults.worker import Worker, assert_in_order, recorded
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

StartWorker = Callable[..., Worker]


def _append_rounds(tenant: Tenant, keys: list[str], rounds: int) -> dict[str, int]:
    """Append `rounds` numbered, interleaved events of each key. Return the number of events per key."""
    append_events(tenant, keys * rounds, data=[number for number in range(rounds) for _ in keys])
    return dict.fromkeys(keys, rounds)


def _keys(tenant: Tenant, count: int) -> list[str]:
    return [f"user:{tenant.pk}-{number}" for number in range(count)]


def _has_recorded(directory: Path, count: int) -> bool:
    return len(recorded(directory)) > count


def _is_settled(stream_id: str) -> bool:
    return not Lane.objects.filter(stream_id=stream_id).exists()


@pytest.mark.parametrize("failpoint", ["dispatching", "dispatched", "claimed", "ran", "settling", "settled", "failing"])
def test_a_worker_that_is_killed_at_a_step_never_loses_or_reorders_an_event(
    failpoint: str, tenant: Tenant, start_worker: StartWorker, directory: Path
) -> None:
    stream = make_stream(tenant)
    if failpoint == "failing":
        (directory / "refuse").touch()
    start_worker(DELIVERY_LEASE_SECONDS="1.5", DELIVERY_RETRY_DELAYS=",".join(["0.2"] * 50), BREAKER_FAILURES="0")
    (directory / failpoint).touch()

    # A worker reaches the failpoint `settling` only if its turn is over: otherwise it settles a delivery and claims the next delivery in
    # one step. So this test needs a lane with more deliveries than one turn runs.
    keys, rounds = (1, TURN_DELIVERIES + 20) if failpoint == "settling" else (6, 5)
    expected = _append_rounds(tenant, _keys(tenant, keys), rounds)

    eventually(lambda: not (directory / failpoint).exists(), seconds=20)
    (directory / "refuse").unlink(missing_ok=True)
    eventually(lambda: len(recorded(directory, step="end")) >= keys * rounds and _is_settled(stream.pk), seconds=40)
    assert_in_order(directory, expected)
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}


def test_the_next_worker_continues_the_work_of_a_killed_worker(tenant: Tenant, start_worker: StartWorker, directory: Path) -> None:
    stream = make_stream(tenant)
    expected = _append_rounds(tenant, _keys(tenant, 20), 10)
    for _ in range(2):
        seen = len(recorded(directory))
        worker = start_worker(DELIVERY_LEASE_SECONDS="1.5")
        eventually(functools.partial(_has_recorded, directory, seen + 10), seconds=20)
        worker.kill()

    start_worker(DELIVERY_LEASE_SECONDS="1.5")

    eventually(lambda: len(recorded(directory, step="end")) >= 200 and _is_settled(stream.pk), seconds=40)
    assert_in_order(directory, expected)


def test_two_workers_share_the_lanes_and_keep_the_order_of_each_lane(tenant: Tenant, start_worker: StartWorker, directory: Path) -> None:
    stream = make_stream(tenant)
    for _ in range(2):
        start_worker()
    keys = _keys(tenant, 10)
    for first in range(0, 50, 5):
        append_events(tenant, keys * 5, data=[first + number for number in range(5) for _ in keys])

    eventually(lambda: len(recorded(directory, step="end")) >= 500 and _is_settled(stream.pk), seconds=40)

    assert_in_order(directory, dict.fromkeys(keys, 50))
    lines = recorded(directory)
    assert len(lines) == 500
    assert len({line["pid"] for line in lines}) > 2


def test_a_thousand_events_of_one_user_are_delivered_in_order_and_quickly(
    tenant: Tenant, start_worker: StartWorker, directory: Path
) -> None:
    stream = make_stream(tenant)
    start_worker()
    expected = _append_rounds(tenant, _keys(tenant, 1), 1000)
    eventually(lambda: recorded(directory), seconds=20)
    started = time.monotonic()

    # The target is 50 events per second, which is 20 seconds. The test waits longer, because the machine may be busy.
    eventually(lambda: _is_settled(stream.pk), seconds=60)

    print(f"{1000 / (time.monotonic() - started):.0f} deliveries/s of one user")  # noqa: T201  (the figure of this run)
    assert_in_order(directory, expected)
    assert len(recorded(directory)) == 1000


def test_the_outcome_of_a_worker_whose_lease_expired_is_refused(tenant: Tenant, start_worker: StartWorker, directory: Path) -> None:
    make_stream(tenant)
    (directory / "pause").touch()
    start_worker(concurrency=2, DELIVERY_LEASE_SECONDS="1.5")
    append_events(tenant, _keys(tenant, 1))
    eventually(lambda: recorded(directory), seconds=20)
    (first,) = recorded(directory)
    os.kill(first["pid"], signal.SIGSTOP)
    (directory / "pause").unlink()
    eventually(lambda: Delivery.objects.filter(tenant_id=tenant.pk, state="delivered", attempts=2).exists(), seconds=20)

    os.kill(first["pid"], signal.SIGCONT)

    eventually(lambda: len(recorded(directory, step="end")) == 2, seconds=20)
    append_events(tenant, _keys(tenant, 1))
    eventually(lambda: Delivery.objects.filter(tenant_id=tenant.pk, state="delivered").count() == 2, seconds=20)
    attempts = Attempt.objects.filter(tenant_id=tenant.pk).order_by("delivery", "number")
    assert [(attempt.number, attempt.outcome) for attempt in attempts] == [(1, "lost"), (2, "delivered"), (1, "delivered")]


def test_no_event_is_lost_when_the_broker_is_flushed(
    tenant: Tenant, start_worker: StartWorker, directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    start_worker()
    expected = _append_rounds(tenant, _keys(tenant, 30), 10)
    for threshold in (20, 100, 200):
        eventually(functools.partial(_has_recorded, directory, threshold), seconds=20)
        redis_server.client.flushall()

    eventually(lambda: len(recorded(directory, step="end")) >= 300 and _is_settled(stream.pk), seconds=60)
    assert_in_order(directory, expected)


def test_a_hanging_broker_delays_deliveries_and_loses_none(
    tenant: Tenant, start_worker: StartWorker, directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    start_worker()
    expected = _append_rounds(tenant, _keys(tenant, 30), 10)
    eventually(lambda: len(recorded(directory)) > 20, seconds=20)
    redis_server.freeze()
    append_events(tenant, _keys(tenant, 30), data=[10] * 30)
    dispatch.dispatch_stream(stream.pk)

    redis_server.thaw()

    eventually(lambda: _is_settled(stream.pk) and len(recorded(directory, step="end")) >= 330, seconds=60)
    assert_in_order(directory, {key: count + 1 for key, count in expected.items()})


def test_no_event_is_lost_when_database_connections_are_closed(tenant: Tenant, start_worker: StartWorker, directory: Path) -> None:
    stream = make_stream(tenant)
    start_worker(DELIVERY_LEASE_SECONDS="1.5")
    expected = _append_rounds(tenant, _keys(tenant, 20), 10)
    for threshold in (20, 60, 100):
        eventually(functools.partial(_has_recorded, directory, threshold), seconds=20)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    eventually(lambda: len(recorded(directory, step="end")) >= 200 and _is_settled(stream.pk), seconds=60)
    assert_in_order(directory, expected)


def test_the_child_processes_of_a_killed_worker_end(start_worker: StartWorker) -> None:
    worker = start_worker()
    children = worker.children()
    assert children

    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait(10)

    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), seconds=10)


def test_a_worker_that_is_asked_to_stop_finishes_its_delivery(tenant: Tenant, start_worker: StartWorker, directory: Path) -> None:
    stream = make_stream(tenant)
    (directory / "pause").touch()
    worker = start_worker()
    append_events(tenant, _keys(tenant, 1))
    eventually(lambda: recorded(directory), seconds=20)

    worker.process.terminate()
    (directory / "pause").unlink()

    assert worker.process.wait(30) == 0
    assert Delivery.objects.get(stream_id=stream.pk).state == "delivered"
