"""Redis is flushed, frozen and stopped. Open streams continue, new streams open, and no client gets an internal error."""

from __future__ import annotations

import time

import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.world import Seeded, World

pytestmark = pytest.mark.fault


def _goes_on(world: World, tenant: Seeded, following: Following) -> None:
    """Wait until every subscriber has the current events and ten later events."""
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=60)


def _opens(following: Following, follower: Follower) -> None:
    started = time.monotonic()
    following.add(follower)
    following.all_open()
    assert time.monotonic() - started < 5.0


def test_streams_continue_while_redis_is_flushed_and_frozen_and_stopped(world: World, following: Following) -> None:
    tenant = world.tenant()
    with world.web() as web, world.writers(tenant, 1, think=0.03) as writers:
        steady = [Follower(f"steady {number}", tenant, lambda: web.address) for number in range(4)]
        following.add(*steady)
        following.all_open(seconds=60)
        _goes_on(world, tenant, following)

        client = world.redis_client()
        client.flushall()
        client.close()
        _goes_on(world, tenant, following)
        # The flush deleted the slots of the open streams. The web process stores the slots in Redis again, without a request of a client.
        eventually(lambda: world.slots(tenant) == len(steady), seconds=10)

        world.freeze(world.redis)
        try:
            _opens(following, Follower("opened while frozen", tenant, lambda: web.address))
            _goes_on(world, tenant, following)
        finally:
            world.thaw(world.redis)

        world.stop_redis()
        try:
            _opens(following, Follower("opened without", tenant, lambda: web.address))
            _goes_on(world, tenant, following)
        finally:
            world.start_redis()
        _goes_on(world, tenant, following)
        eventually(lambda: world.slots(tenant) == len(following.followers), seconds=10)

        writers.stop()
        eventually(lambda: world.is_numbered(tenant))
        following.all_at(world.head(tenant))
        following.stop()
    assert [len(follower.sessions) for follower in steady] == [1] * len(steady), "an open stream was interrupted"
    assert following.statuses.keys() == {200}
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))
