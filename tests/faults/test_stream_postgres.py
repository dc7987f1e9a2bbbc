"""Streams while PostgreSQL is restarted, crashes, freezes, is disconnected, or is restored to an older state."""

from __future__ import annotations

import signal
import time

import pytest

from config.launcher.postgres import DATABASE
from tests.conformance.reader import Subscriber
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.world import Seeded, World

pytestmark = pytest.mark.fault

FREEZE_SECONDS = 10.0


def _goes_on(world: World, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=60)


def test_streams_keep_their_position_while_the_database_restarts_crashes_freezes_or_is_cut_off(world: World, following: Following) -> None:
    tenant = world.tenant()
    with world.web() as web, world.writers(tenant, 2, think=0.03) as writers:
        steady = [Follower(f"steady {number}", tenant, lambda: web.address) for number in range(4)]
        # These clients cut their connections and reconnect all the time, so that some of them connect during the outage.
        restless = [Follower(f"restless {number}", tenant, lambda: web.address, cut_bytes=10_000) for number in range(3)]
        following.add(*steady, *restless)
        eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
        _goes_on(world, tenant, following)

        for _ in range(3):
            world.terminate_backends()
            _goes_on(world, tenant, following)
        world.restart_postgres(signal.SIGINT)
        _goes_on(world, tenant, following)
        world.restart_postgres(signal.SIGQUIT)
        _goes_on(world, tenant, following)

        world.freeze(world.postgres)
        blocks = [len(follower.sessions[0].blocks) for follower in steady]
        # Keep the database frozen for this long.
        time.sleep(FREEZE_SECONDS)
        beats = [len(follower.sessions[0].blocks) - before for follower, before in zip(steady, blocks, strict=True)]
        world.thaw(world.postgres)
        assert min(beats) >= FREEZE_SECONDS, "at least one heartbeat per second, although the database is frozen"
        _goes_on(world, tenant, following)

        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert [len(follower.sessions) for follower in steady] == [1] * len(steady), "an open stream was interrupted"
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


def _subscribed(tenant: Seeded, address: tuple[str, int], offset: str) -> Subscriber:
    headers = {"Host": tenant.host, "Authorization": f"Bearer {tenant.token}", "Last-Event-ID": offset}
    deadline = time.monotonic() + 20
    # The pool detects its closed connections one by one. For each of them, one request is refused.
    while (stream := Subscriber(address, headers=headers, deadline=20)).status == 503:
        stream.close()
        assert time.monotonic() < deadline
    return stream


def _copy_database(world: World, source: str, copy: str) -> None:
    """Copy a database in its current state. Other sessions of the database are terminated meanwhile."""
    world.query(f"ALTER DATABASE {source} ALLOW_CONNECTIONS false", database="postgres")
    try:
        world.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", source, database="postgres")
        eventually(lambda: not world.query("SELECT 1 FROM pg_stat_activity WHERE datname = %s", source, database="postgres"))
        world.query(f"CREATE DATABASE {copy} TEMPLATE {source}", database="postgres")
    finally:
        world.query(f"ALTER DATABASE {source} ALLOW_CONNECTIONS true", database="postgres")


def test_old_cursors_are_refused_and_open_streams_end_after_a_restore(world: World) -> None:
    tenant = world.tenant()

    def write(count: int) -> None:
        with world.writers(tenant, 1, count=count, think=0.0) as writers:
            writers.wait()
            eventually(lambda: world.is_numbered(tenant))

    with world.web() as web:
        write(5)
        kept = world.head(tenant)
        _copy_database(world, DATABASE, "backup")
        write(20)
        lost = world.head(tenant)
        assert lost.position > kept.position + 5
        with _subscribed(tenant, web.address, tenant.sealer.seal(world.cursor(tenant))) as open_stream:
            open_stream.opened()
            # The older state replaces the newer state while a process runs. The process is not notified.
            world.query(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false", database="postgres")
            world.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", DATABASE, database="postgres")
            eventually(lambda: not world.query("SELECT 1 FROM pg_stat_activity WHERE datname = %s", DATABASE, database="postgres"))
            world.query(f"ALTER DATABASE {DATABASE} RENAME TO newer", database="postgres")
            world.query(f"ALTER DATABASE backup RENAME TO {DATABASE}", database="postgres")
            assert world.head(tenant) == kept

            *_, ended = open_stream.blocks(within=20)
            assert ended.message["error"]["code"] == "cursor_expired"

        assert world.head(tenant).epoch > kept.epoch
        write(30)
        for position in (kept.position, lost.position):
            offset = tenant.sealer.seal(world.cursor(tenant, epoch=kept.epoch, position=position))
            with _subscribed(tenant, web.address, offset) as stream:
                assert stream.status == 410
    world.query("DROP DATABASE newer", database="postgres")
