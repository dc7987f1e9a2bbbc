"""An idle transaction of a foreign program locks a user and a log. Writers of this user get an error; all others continue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.requesting import Requests
from tests.faults.world import Seeded, World

pytestmark = pytest.mark.fault

# The `lock_timeout` of a session of the service, plus the delay of a busy machine.
_LOCK_SECONDS = 10.0
_SLACK_SECONDS = 10.0


@contextmanager
def _blocked(world: World, tenant: Seeded) -> Iterator[None]:
    """Lock the first user and the log of a tenant in an idle transaction."""
    with psycopg.connect(world.address()) as idle:
        idle.execute("SELECT 1 FROM identity_user WHERE user_id = %s FOR UPDATE", [tenant.users[0]])
        idle.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.id])
        yield
        idle.rollback()


def _goes_on(world: World, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    wanted = place._replace(position=place.position + 10)
    eventually(lambda: all(one.reached >= wanted for one in following.followers if one.tenant == tenant), seconds=60)


def test_an_idle_transaction_delays_only_the_user_and_the_log_that_it_locks(world: World, following: Following) -> None:
    tenant, other = world.tenant(), world.tenant()
    with world.web() as web, world.writers(tenant, 1, think=0.03) as blocked, world.writers(other, 1, think=0.03) as free:
        following.add(*(Follower(one.id, one, lambda: web.address) for one in (tenant, other)))
        following.all_open(seconds=60)
        _goes_on(world, tenant, following)
        client = Requests(tenant, web.address)
        with _blocked(world, tenant):
            locked = world.head(tenant)
            refused = client.rename(tenant.users[0])
            assert (refused.status, bool(refused.retry_after)) == (503, True)
            assert _LOCK_SECONDS * 0.9 <= refused.seconds <= _LOCK_SECONDS + _SLACK_SECONDS
            # Another user of the tenant is changed at once. Its event gets a position as soon as the log is unlocked.
            changed = client.rename(tenant.users[1])
            assert changed.status == 200
            assert changed.seconds < _LOCK_SECONDS
            _goes_on(world, other, following)
            assert world.head(tenant) == locked
        assert client.rename(tenant.users[0]).status == 200
        _goes_on(world, tenant, following)
        for writers in (blocked, free):
            writers.stop()
        eventually(lambda: world.is_numbered(tenant) and world.is_numbered(other), seconds=30)
        heads = {one.id: world.head(one) for one in (tenant, other)}
        eventually(lambda: all(one.reached >= heads[one.tenant.id] for one in following.followers), seconds=60)
        following.stop()
    assert [len(follower.sessions) for follower in following.followers] == [1, 1]
    assert_never_failed(following)
    for one, writers in ((tenant, blocked), (other, free)):
        history = world.history(one, [writers], [follower.reader for follower in following.followers if follower.tenant == one])
        assert_holds(client.added_to(history) if one == tenant else history)
