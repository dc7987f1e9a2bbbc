"""PostgreSQL is restarted and crashed while workers run. No event is lost or reordered, and only deliveries in progress are repeated."""

from __future__ import annotations

import functools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deadlines import eventually
from tests.faults.worker import Worker, recorded
from tests.faults.world import World

pytestmark = pytest.mark.fault

KEYS, ROUNDS, PROCESSES = 20, 15, 2
# The number of deliveries in progress: a process runs one delivery while it stores the outcome of another delivery.
UNDER_WAY = 2 * PROCESSES
RESTARTS = (30, 120)


@contextmanager
def working(world: World, directory: Path) -> Iterator[Worker]:
    """Run a worker on the test's private servers."""
    database = world.environment["DATABASE_URL"]
    # With short leases, lanes whose worker has failed are claimed again soon. The breaker is off, because failures of the database would
    # otherwise hold the stream.
    times = {"DELIVERY_LEASE_SECONDS": "2", "DELIVERY_RETRY_DELAYS": ",".join(["0.2"] * 50), "BREAKER_FAILURES": "0"}
    worker = Worker(directory, world.environment["REDIS_URL"], concurrency=PROCESSES, DATABASE_URL=database, **times)
    try:
        yield worker
    finally:
        worker.kill()


def has_recorded(directory: Path, count: int) -> bool:
    return len(recorded(directory)) > count


def waiting(world: World, stream_id: str) -> int:
    return int(world.query("SELECT count(*) FROM provisioning_lane WHERE stream_id = %s", stream_id)[0][0])


def delivered_through(world: World, directory: Path, restart: Callable[[], None]) -> str:
    """Deliver all events of a stream while `restart` restarts the database twice. Return the id of the stream."""
    tenant = world.tenant()
    stream_id = world.append(tenant, keys=KEYS, rounds=ROUNDS)
    with working(world, directory):
        for count in RESTARTS:
            eventually(functools.partial(has_recorded, directory, count), seconds=60)
            restart()
        everything = KEYS * ROUNDS
        is_settled = functools.partial(waiting, world, stream_id)
        eventually(lambda: len(recorded(directory, step="end")) >= everything and not is_settled(), seconds=120)
    assert world.query("SELECT state, count(*) FROM provisioning_delivery WHERE stream_id = %s GROUP BY state", stream_id) == [
        ("delivered", everything)
    ]
    assert not world.query("SELECT 1 FROM provisioning_deadletter WHERE stream_id = %s", stream_id)
    return stream_id


def assert_nothing_was_overtaken(directory: Path) -> None:
    """Assert that each event of a user began only after all earlier events were accepted, and that all events were accepted."""
    taken: dict[str, int] = Counter()
    for line in recorded(directory):
        assert line["number"] <= taken[line["key"]], line
        taken[line["key"]] = max(taken[line["key"]], line["number"] + 1)
    assert set(taken.values()) == {ROUNDS}
    ended = {(line["key"], line["number"]) for line in recorded(directory, step="end")}
    assert len(ended) == KEYS * ROUNDS


def test_a_database_restart_repeats_at_most_the_deliveries_in_progress(world: World, directory: Path) -> None:
    delivered_through(world, directory, world.restart_postgres)

    assert_nothing_was_overtaken(directory)
    began = Counter((line["key"], line["number"]) for line in recorded(directory))
    assert sum(began.values()) - len(began) <= UNDER_WAY * len(RESTARTS)
    for key in {key for key, _ in began}:
        numbers = [line["number"] for line in recorded(directory, keys=[key])]
        assert numbers == sorted(numbers), "a clean stop keeps every outcome, so no user gets an older state"


def test_deliveries_lost_by_a_database_crash_are_repeated_in_order(world: World, directory: Path) -> None:
    delivered_through(world, directory, functools.partial(world.restart_postgres, signal.SIGQUIT))

    assert_nothing_was_overtaken(directory)
    last = {line["key"]: line["number"] for line in recorded(directory)}
    assert set(last.values()) == {ROUNDS - 1}, "the newest state of every user is written last"
