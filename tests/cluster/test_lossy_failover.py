"""A cluster with asynchronous replication loses its primary and the last commits. Clients get a report of the loss before new events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.delivering import delivering
from tests.cluster.world import ClusterWorld
from tests.conformance.reader import Subscriber
from tests.deadlines import eventually
from tests.faults.following import Follower, Following
from tests.faults.invariants import Place
from tests.faults.world import Seeded

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1200)]


def write(world: ClusterWorld, tenant: Seeded, count: int) -> None:
    """Make changes, and wait until their events are numbered."""
    with world.writers(tenant, 1, count=count, think=0.0) as writers:
        writers.wait()
        eventually(lambda: world.is_numbered(tenant), seconds=30)


def lose_the_primary(world: ClusterWorld, tenant: Seeded, count: int) -> Place:
    """Make changes that no standby gets, and kill the primary. Return the head of the log before the loss."""
    leader = world.cluster.leading()
    leader.stop_replicating()
    write(world, tenant, count)
    lost = world.head(tenant)
    world.cluster.kill(leader)
    leader.forget_unreplicated()
    world.cluster.wait_for_another_leader(leader)
    world.cluster.start(leader)
    return lost


def test_every_reader_gets_a_report_of_lost_events_before_a_position_is_assigned_again(
    fast_world: ClusterWorld, following: Following, tmp_path: Path
) -> None:
    world, tenant = fast_world, fast_world.tenant()
    with world.web() as web, delivering(world, tenant, tmp_path, is_lossy=True):
        write(world, tenant, 5)
        world.cluster.wait(world.cluster.is_whole)
        following.add(Follower("steady", tenant, lambda: web.address))
        kept = world.head(tenant)
        following.all_at(kept, seconds=60)
        lost = lose_the_primary(world, tenant, 20)
        assert world.head(tenant).position < lost.position

        # Even without a change after the promotion, the open stream ends, and its cursor is refused.
        eventually(lambda: following.statuses[410], seconds=60)
        assert world.head(tenant).position < lost.position

        write(world, tenant, 30)

        now = world.head(tenant)
        assert now.epoch > kept.epoch
        assert now.position > lost.position
        for position in (kept.position, lost.position):
            with subscribed(tenant, web.address, tenant.sealer.seal(world.cursor(tenant, epoch=kept.epoch, position=position))) as stream:
                assert stream.status == 410
        with subscribed(tenant, web.address, tenant.sealer.seal(world.cursor(tenant, position=kept.position))) as stream:
            assert stream.status == 200
        following.stop()
        assert_no_event_of_the_new_epoch(following, lost)
        world.cluster.wait(world.cluster.is_whole)


def test_a_log_without_readers_begins_a_new_epoch_after_a_lossy_failover(fast_world: ClusterWorld) -> None:
    world, tenant = fast_world, fast_world.tenant()
    write(world, tenant, 5)
    world.cluster.wait(world.cluster.is_whole)
    before = world.head(tenant)
    lose_the_primary(world, tenant, 20)
    assert world.head(tenant).epoch == before.epoch

    write(world, tenant, 1)

    assert world.head(tenant).epoch > before.epoch
    world.cluster.wait(world.cluster.is_whole)


def assert_no_event_of_the_new_epoch(following: Following, lost: Place) -> None:
    """Assert that no reader with a cursor of the lost log got an event that was numbered after the failover."""
    for follower in following.followers:
        assert follower.reached.epoch == lost.epoch
        assert max(follower.arrived) <= lost.position


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
