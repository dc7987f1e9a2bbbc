"""Redis has used all its memory and refuses every write. Streams and requests continue. Deliveries continue as soon as memory is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from identity.models import Tenant
from provisioning.models import DeadLetter, Delivery
from tests.deadlines import eventually
from tests.faults.conftest import RedisServer
from tests.faults.delivery_invariants import assert_sound, is_settled
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.requesting import Requests
from tests.faults.worker import Worker, recorded
from tests.faults.world import World
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

_QUICK = {"DELIVERY_LEASE_SECONDS": "10", "DELIVERY_RETRY_DELAYS": "0.2,0.2"}
_USERS = 6


@contextmanager
def full(client: redis.Redis) -> Iterator[None]:
    """Let the server refuse every command that needs memory."""
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("needs memory", 1)
        yield
    finally:
        client.config_set("maxmemory", 0)


def test_streams_and_requests_continue_while_redis_refuses_every_write(world: World, following: Following) -> None:
    tenant = world.tenant()
    with world.web(RATE_LIMITS_ENABLED="1") as web, world.writers(tenant, 1, think=0.03) as writers:
        steady = [Follower(f"steady {number}", tenant, lambda: web.address) for number in range(2)]
        following.add(*steady)
        following.all_open(seconds=60)
        connection = world.redis_client()
        client = Requests(tenant, web.address)
        with full(connection):
            following.add(Follower("opened while full", tenant, lambda: web.address))
            following.all_open(seconds=60)
            place = world.head(tenant)
            following.all_at(place._replace(position=place.position + 10), seconds=60)
            answers = client.one_of_each()
            assert not [answer for answer in answers if answer.status >= 500], answers
            assert [answer.status for answer in answers[:2]] == [200, 200]
        connection.close()
        # The web process stores the slots of the open streams in Redis again, without a request of a client.
        eventually(lambda: world.slots(tenant) == len(following.followers), seconds=30)
        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=30)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert [len(follower.sessions) for follower in steady] == [1, 1], "an open stream was interrupted"
    assert_never_failed(following)
    assert_holds(client.added_to(world.history(tenant, [writers], following.readers)))


def test_a_broker_without_memory_delays_deliveries_and_loses_none(
    tenant: Tenant, start_worker: Callable[..., Worker], directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    worker = start_worker(**_QUICK)
    keys = [f"user:{tenant.pk}-{number}" for number in range(_USERS)]
    # Deliveries are in progress, and messages wait in the queue, when Redis runs out of memory.
    (directory / "pause").touch()
    append_events(tenant, keys * 2, data=[number for number in range(2) for _ in keys])
    eventually(lambda: recorded(directory), seconds=60)
    with full(redis_server.client):
        (directory / "pause").unlink()
        append_events(tenant, keys, data=[2] * _USERS)
        eventually(lambda: Delivery.objects.filter(stream_id=stream.pk, state="delivered").exists(), seconds=60)
        assert worker.process.poll() is None
    eventually(lambda: is_settled(stream), seconds=90)
    assert Delivery.objects.filter(stream_id=stream.pk, state="delivered").count() == 3 * _USERS
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    assert_sound(stream, directory, crashes=0)
