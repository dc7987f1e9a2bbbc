"""The primary of a PostgreSQL cluster is switched over, killed, frozen and isolated while clients write and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from tests.cluster.delivering import delivering
from tests.cluster.patroni import Cluster
from tests.cluster.world import ClusterWorld
from tests.conformance.web_process import WebProcess
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.world import Seeded

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1200)]

Fault = Callable[[Cluster], None]

LONG = 4000


def switch_over(cluster: Cluster) -> None:
    old = cluster.leading()
    cluster.switch_over()
    cluster.wait_for_another_leader(old)


def kill(cluster: Cluster) -> None:
    old = cluster.leading()
    cluster.kill(old)
    cluster.wait_for_another_leader(old)
    cluster.start(old)


def freeze(cluster: Cluster) -> None:
    old = cluster.leading()
    cluster.freeze(old)
    cluster.wait_for_another_leader(old)
    cluster.thaw(old)


def cut_off(cluster: Cluster) -> None:
    old = cluster.leading()
    old.cut_off()
    cluster.wait_for_another_leader(old)
    old.reconnect()


FAULTS: dict[str, Fault] = {"switch over": switch_over, "kill": kill, "freeze": freeze, "cut off": cut_off}


def readers_get_ten_more_events(world: ClusterWorld, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=90)


class LongReaders:
    """Subscribers that begin to replay a long log just before a failure."""

    def __init__(self, world: ClusterWorld, web: WebProcess) -> None:
        self._world, self._web = world, web
        self._tenant = world.tenant()
        world.lengthen_log(self._tenant, LONG, 4000)
        self._following = Following()

    def __enter__(self) -> Self:
        self._following.__enter__()
        self._following.add(*(Follower(f"long {number}", self._tenant, lambda: self._web.address) for number in range(3)))
        eventually(lambda: any(follower.arrived for follower in self._following.followers), seconds=60)
        return self

    def __exit__(self, *failure: object) -> None:
        self._following.__exit__(*failure)

    def assert_whole(self) -> None:
        """Wait until each subscriber has read the log to its end. Assert that no event is missing."""
        self._following.all_at(self._world.head(self._tenant), seconds=180)
        for follower in self._following.followers:
            assert set(follower.arrived) == set(range(self._tenant.base + 1, self._tenant.base + LONG + 1))
        assert_never_failed(self._following)


@pytest.mark.parametrize("faults", [pytest.param(("kill",), marks=pytest.mark.core), ("switch over", "freeze", "cut off")], ids=", ".join)
def test_a_failover_with_synchronous_replication_loses_nothing_and_keeps_every_cursor(
    faults: tuple[str, ...], safe_world: ClusterWorld, following: Following, tmp_path: Path
) -> None:
    world, tenant = safe_world, safe_world.tenant()
    epoch = world.head(tenant).epoch
    with world.web() as web, delivering(world, tenant, tmp_path) as deliveries, world.writers(tenant, 2, think=0.05) as writers:
        following.add(*(Follower(f"steady {number}", tenant, lambda: web.address) for number in range(3)))
        following.add(*(Follower(f"restless {number}", tenant, lambda: web.address, cut_bytes=10_000) for number in range(2)))
        eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
        readers_get_ten_more_events(world, tenant, following)

        for fault in faults:
            export = deliveries.start_export()
            with LongReaders(world, web) as long_readers:
                FAULTS[fault](world.cluster)
                readers_get_ten_more_events(world, tenant, following)
                long_readers.assert_whole()
            world.cluster.wait(world.cluster.is_whole)
            # The primary waits for its synchronous standby again. New events prove that numbering continues in this state.
            readers_get_ten_more_events(world, tenant, following)
            deliveries.let_lease_run_out(export)
            eventually(lambda export=export: deliveries.is_exported(export), seconds=90)  # type: ignore[misc]  # bound at once

        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert world.head(tenant).epoch == epoch
    assert 410 not in following.statuses
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))
