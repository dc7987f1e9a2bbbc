"""The primary of a PostgreSQL cluster is switched over, killed, frozen and isolated while clients write and read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.patroni import Cluster
from tests.cluster.world import ClusterWorld
from tests.conformance.reader import Subscriber
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.world import Seeded

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

Fault = Callable[[Cluster], None]


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


def readers_get_ten_more_events(world: ClusterWorld, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=90)


def test_a_failover_with_synchronous_replication_loses_no_change_and_keeps_every_cursor(
    safe_world: ClusterWorld, following: Following
) -> None:
    world, tenant = safe_world, safe_world.tenant()
    epoch = world.head(tenant).epoch
    with world.web() as web, world.writers(tenant, 2, think=0.03) as writers:
        following.add(*(Follower(f"steady {number}", tenant, lambda: web.address) for number in range(3)))
        following.add(*(Follower(f"restless {number}", tenant, lambda: web.address, cut_bytes=10_000) for number in range(2)))
        eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
        readers_get_ten_more_events(world, tenant, following)

        for fault in (switch_over, kill, freeze, cut_off):
            fault(world.cluster)
            readers_get_ten_more_events(world, tenant, following)
            world.cluster.wait(world.cluster.is_whole)
            # The primary waits for its synchronous standby again, and the numbering has detected it.
            readers_get_ten_more_events(world, tenant, following)

        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert world.head(tenant).epoch == epoch
    assert 410 not in following.statuses
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


def test_a_failover_that_loses_events_refuses_old_cursors_before_a_position_is_assigned_again(fast_world: ClusterWorld) -> None:
    world, tenant = fast_world, fast_world.tenant()

    def write(count: int) -> None:
        with world.writers(tenant, 1, count=count, think=0.0) as writers:
            writers.wait()
            eventually(lambda: world.is_numbered(tenant), seconds=30)

    with world.web() as web:
        write(5)
        world.cluster.wait(world.cluster.is_whole)
        leader = world.cluster.leading()
        leader.stop_replicating()
        kept = world.head(tenant)
        write(20)
        lost = world.head(tenant)
        assert lost.position > kept.position
        world.cluster.kill(leader)
        leader.forget_unreplicated()
        world.cluster.wait_for_another_leader(leader)
        assert world.head(tenant).position < lost.position

        write(30)

        now = world.head(tenant)
        assert now.epoch > kept.epoch
        assert now.position > lost.position
        for position in (kept.position, lost.position):
            with subscribed(tenant, web.address, tenant.sealer.seal(world.cursor(tenant, epoch=kept.epoch, position=position))) as stream:
                assert stream.status == 410
        with subscribed(tenant, web.address, tenant.sealer.seal(world.cursor(tenant, position=kept.position))) as stream:
            assert stream.status == 200
        world.cluster.start(leader)
        world.cluster.wait(world.cluster.is_whole)


def subscribed(tenant: Seeded, address: tuple[str, int], offset: str) -> Subscriber:
    """Return a stream that begins after the offset. A request that gets 503 is repeated."""
    headers = {"Host": tenant.host, "Authorization": f"Bearer {tenant.token}", "Last-Event-ID": offset}
    found: list[Subscriber] = []

    def answered() -> bool:
        found.append(Subscriber(address, headers=headers, deadline=20))
        if found[-1].status != 503:
            return True
        found[-1].close()
        return False

    eventually(answered, seconds=30)
    return found[-1]
