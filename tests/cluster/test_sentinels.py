"""The master of three Redis protocol servers is killed and frozen under load. The service continues with the new master that the sentinels
elect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.delivering import Deliveries, delivering
from tests.cluster.sentinels import PREFIX, encrypted_server
from tests.cluster.world import SentinelWorld
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed, latencies
from tests.faults.invariants import assert_holds
from tests.faults.worker import recorded
from tests.faults.world import Seeded

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1200)]

Fault = Callable[[SentinelWorld, Callable[[], None]], None]

# Without hints, streams find an event by polling, after up to a second. Without nudges, the sweep finds a delivery after five minutes.
_HINTED_SECONDS = 0.5
_SWEEP_SECONDS = 300
_PATIENCE_SECONDS = 90


WITH_TLS = pytest.mark.skipif(encrypted_server() is None, reason="redis-server is not installed; run `make peers`")


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[SentinelWorld]:
    made = SentinelWorld(is_encrypted=request.param)
    yield made
    made.close()


def events_arrive_by_hints(world: SentinelWorld, tenant: Seeded, following: Following) -> None:
    """Wait until new events reach every subscriber sooner than polling would find them."""

    def is_fast() -> bool:
        place = world.head(tenant)
        following.all_at(place._replace(position=place.position + 10), seconds=_PATIENCE_SECONDS)
        recent = {position: at for position, at in world.recorded(tenant).items() if position > place.position}
        found = latencies(following.followers, recent)
        return bool(found) and found[len(found) * 9 // 10] < _HINTED_SECONDS

    eventually(is_fast, seconds=_PATIENCE_SECONDS)


def deliveries_arrive_by_nudges(deliveries: Deliveries) -> None:
    """Require that the worker delivers more events before the sweep would find them. Only nudges through the queue make this possible."""
    before = len(recorded(deliveries.directory, step="end"))
    eventually(lambda: len(recorded(deliveries.directory, step="end")) > before + 10, seconds=_PATIENCE_SECONDS)


def everything_is_back(world: SentinelWorld, tenant: Seeded, following: Following, deliveries: Deliveries) -> None:
    events_arrive_by_hints(world, tenant, following)
    deliveries_arrive_by_nudges(deliveries)
    eventually(lambda: world.slots(tenant) == len(following.followers), seconds=_PATIENCE_SECONDS)
    rates_are_counted(world)


def rates_are_counted(world: SentinelWorld) -> None:
    """Wait until the new master has keys of rate limits. These keys expire after seconds, so the service wrote them after the fault."""
    with world.redis_client() as client:
        eventually(lambda: any(client.scan_iter(f"{PREFIX}:limits*")), seconds=_PATIENCE_SECONDS)


def kill(world: SentinelWorld, everything_is_back: Callable[[], None]) -> None:
    old = world.cluster.index_of_master()
    world.cluster.kill(old)
    world.cluster.wait_for_another_master(old)
    everything_is_back()
    world.cluster.start(old)
    assert world.cluster.role_of(old) == "master", "a sentinel has already made the restarted server a replica"
    everything_is_back()


def freeze(world: SentinelWorld, everything_is_back: Callable[[], None]) -> None:
    old = world.cluster.index_of_master()
    world.cluster.freeze(old)
    world.cluster.wait_for_another_master(old)
    everything_is_back()
    world.cluster.thaw(old)
    everything_is_back()


@pytest.mark.parametrize(
    ("world", "faults"),
    [
        pytest.param(False, (kill,), id="killed", marks=pytest.mark.core),
        pytest.param(True, (kill, freeze), id="killed and frozen, with TLS", marks=WITH_TLS),
    ],
    indirect=["world"],
)
def test_everything_continues_with_the_new_master(
    world: SentinelWorld, faults: tuple[Fault, ...], following: Following, tmp_path: Path
) -> None:
    tenant = world.tenant()
    with (
        world.web(RATE_LIMITS_ENABLED="1", RATE_LIMIT_BURST="100000", DELIVERY_NUDGES_ENABLED="1") as web,
        delivering(world, tenant, tmp_path, DELIVERY_SWEEP_SECONDS=str(_SWEEP_SECONDS)) as deliveries,
        world.writers(tenant, 2, think=0.05, variables={"DELIVERY_NUDGES_ENABLED": "1"}) as writers,
    ):
        # Each connection of a reader is a request that the rate limit counts, so `rates_are_counted` finds keys.
        following.add(*(Follower(f"restless {number}", tenant, lambda: web.address, cut_bytes=5_000) for number in range(2)))
        following.add(*(Follower(f"steady {number}", tenant, lambda: web.address) for number in range(2)))
        eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
        is_back = partial(everything_is_back, world, tenant, following, deliveries)
        is_back()

        for fault in faults:
            fault(world, is_back)
            world.cluster.wait(world.cluster.is_whole)

        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert following.statuses.keys() <= {200}
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))
