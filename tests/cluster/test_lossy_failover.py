"""The primary of a cluster with asynchronous replication is lost with its last commits: what was lost is told before anything new."""

from __future__ import annotations

import pytest

from tests.cluster.world import ClusterWorld
from tests.conformance.reader import Subscriber
from tests.deadlines import eventually
from tests.faults.world import Seeded

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]


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
