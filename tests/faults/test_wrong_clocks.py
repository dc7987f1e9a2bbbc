"""The clocks of processes are an hour ahead or behind. Positions, streams and deliveries do not depend on these clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from identity.models import Tenant
from provisioning.models import Delivery
from tests.deadlines import eventually
from tests.faults.clocks import clock
from tests.faults.conftest import RedisServer
from tests.faults.delivery_invariants import assert_sound, is_settled
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.requesting import Requests
from tests.faults.worker import Worker, recorded
from tests.faults.world import World
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

_HOUR = 3600.0
_AHEAD, _BEHIND = 1, -1
_USERS, _ROUNDS = 6, 5


def test_positions_cursors_and_slots_do_not_depend_on_the_clock_of_a_process(world: World, following: Following) -> None:
    # Each process compares the issue time of a token with its own clock. This token was issued two hours ago, so every clock accepts it.
    [tenant] = world.new_tenants(1, **clock(-2))
    began = time.time()
    with (
        world.web(**clock(_AHEAD)) as ahead,
        world.web(**clock(_BEHIND)) as behind,
        Proxy(ahead.address, behind.address) as balancer,
        world.writers(tenant, 1, think=0.03, variables=clock(_AHEAD)) as early,
        world.writers(tenant, 1, think=0.03, variables=clock(_BEHIND)) as late,
    ):
        steady = [Follower("ahead", tenant, lambda: ahead.address), Follower("behind", tenant, lambda: behind.address)]
        # These readers get a cursor from one of the two processes and resume with the cursor at the other process.
        restless = [Follower(f"restless {number}", tenant, lambda: balancer.address, cut_bytes=10_000) for number in range(2)]
        following.add(*steady, *restless)
        eventually(lambda: all(len(follower.sessions) >= 4 for follower in restless), seconds=90)
        eventually(lambda: world.slots(tenant) >= len(steady), seconds=30)
        clients = [Requests(tenant, web.address) for web in (ahead, behind)]
        for number, client in enumerate(clients):
            assert client.rename(tenant.users[number]).status == 200
        for writers in (early, late):
            writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=30)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    moments = [moment for position, moment in sorted(world.recorded(tenant).items()) if position > tenant.base]
    assert moments == sorted(moments)
    assert began - _HOUR / 60 <= moments[0]
    assert moments[-1] <= time.time() + _HOUR / 60
    assert [len(follower.sessions) for follower in steady] == [1, 1]
    assert_never_failed(following)
    history = world.history(tenant, [early, late], following.readers)
    for client in clients:
        history = client.added_to(history)
    assert_holds(history)


def test_leases_and_retries_do_not_depend_on_the_clock_of_a_worker(
    tenant: Tenant, start_worker: Callable[..., Worker], directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    times = {"DELIVERY_LEASE_SECONDS": "20", "DELIVERY_RETRY_DELAYS": ",".join(["0.5"] * 100), "BREAKER_FAILURES": "0"}
    start_worker(**times, **clock(_AHEAD))
    start_worker(**times, **clock(_BEHIND))
    keys = [f"user:{tenant.pk}-{number}" for number in range(_USERS)]
    (directory / "refuse").touch()
    append_events(tenant, keys * _ROUNDS, data=[number for number in range(_ROUNDS) for _ in keys])
    eventually(lambda: Delivery.objects.filter(stream_id=stream.pk, attempts__gte=2).count() == _USERS, seconds=60)
    (directory / "refuse").unlink()
    eventually(lambda: is_settled(stream), seconds=90)
    assert Delivery.objects.filter(stream_id=stream.pk, state="delivered").count() == _USERS * _ROUNDS
    assert len({line["pid"] for line in recorded(directory)}) > 1
    assert_sound(stream, directory, crashes=0)


def test_a_worker_whose_clock_is_behind_takes_over_the_deliveries_of_a_killed_worker_whose_clock_is_ahead(
    tenant: Tenant, start_worker: Callable[..., Worker], directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    times = {"DELIVERY_LEASE_SECONDS": "5", "DELIVERY_RETRY_DELAYS": "0.2,0.2"}
    ahead = start_worker(**times, **clock(_AHEAD))
    keys = [f"user:{tenant.pk}-{number}" for number in range(_USERS)]
    (directory / "pause").touch()
    append_events(tenant, keys * 2, data=[number for number in range(2) for _ in keys])
    eventually(lambda: recorded(directory), seconds=60)
    ahead.kill()
    (directory / "pause").unlink()
    start_worker(**times, **clock(_BEHIND))
    eventually(lambda: is_settled(stream), seconds=90)
    assert Delivery.objects.filter(stream_id=stream.pk, state="delivered").count() == _USERS * 2
    assert_sound(stream, directory, crashes=1)
