"""The disk of PostgreSQL is full, or fails to flush. Writers get errors, and no acknowledged change is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from tests.deadlines import eventually
from tests.faults.disks import Disk, DiskWorld, ImageDisk, ImageWorld, obstacle
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.requesting import Requests, assert_refused_politely
from tests.faults.world import Seeded, World

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def disks() -> Iterator[DiskWorld]:
    if reason := obstacle(Disk):
        pytest.skip(reason)
    made = DiskWorld()
    yield made
    made.close()


@pytest.fixture
def image() -> Iterator[ImageWorld]:
    if reason := obstacle(ImageDisk):
        pytest.skip(reason)
    made = ImageWorld()
    yield made
    made.close()


def goes_on(world: World, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=60)


def has_ended(world: World, statement: str) -> bool:
    """Run a statement that needs space, and report whether the server has ended."""
    with suppress(psycopg.Error), psycopg.connect(world.address(), autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement.encode())
    return world.postgres.popen.poll() is not None


def test_writers_get_errors_while_the_data_disk_is_full_and_continue_afterwards(disks: DiskWorld, following: Following) -> None:
    tenant = disks.tenant()
    with disks.web() as web, disks.writers(tenant, 2, think=0.01) as writers:
        following.add(*(Follower(f"stream {number}", tenant, lambda: web.address) for number in range(2)))
        following.all_open(seconds=60)
        goes_on(disks, tenant, following)
        client = Requests(tenant, web.address)
        disks.data.fill()
        eventually(lambda: client.rename(tenant.users[0]).status == 503, seconds=60)
        assert_refused_politely(client.one_of_each())
        disks.data.repair()
        assert disks.postgres.popen.poll() is None
        goes_on(disks, tenant, following)
        assert client.rename(tenant.users[0]).status == 200
        writers.stop()
        eventually(lambda: disks.is_numbered(tenant), seconds=30)
        following.all_at(disks.head(tenant), seconds=60)
        following.stop()
    assert [len(follower.sessions) for follower in following.followers] == [1, 1]
    assert_never_failed(following)
    assert_holds(client.added_to(disks.history(tenant, [writers], following.readers)))


def test_a_full_disk_of_the_write_ahead_log_loses_no_acknowledged_change(disks: DiskWorld, following: Following) -> None:
    tenant = disks.tenant()
    with disks.web() as web, disks.writers(tenant, 2, think=0.01) as writers:
        following.add(Follower("stream", tenant, lambda: web.address))
        following.all_open(seconds=60)
        goes_on(disks, tenant, following)
        client = Requests(tenant, web.address)
        disks.log.fill()
        eventually(lambda: has_ended(disks, "SELECT txid_current(), pg_switch_wal()"), seconds=90)
        assert_refused_politely(client.one_of_each())
        disks.log.repair()
        disks.start_postgres()
        goes_on(disks, tenant, following)
        writers.stop()
        eventually(lambda: disks.is_numbered(tenant), seconds=30)
        following.all_at(disks.head(tenant), seconds=60)
        following.stop()
    assert len(following.followers[0].sessions) == 1
    assert_never_failed(following)
    assert_holds(client.added_to(disks.history(tenant, [writers], following.readers)))


def test_a_disk_that_fails_to_flush_loses_no_acknowledged_change(image: ImageWorld, following: Following) -> None:
    tenant = image.tenant()
    with image.web() as web, image.writers(tenant, 2, think=0.01) as writers:
        following.add(Follower("stream", tenant, lambda: web.address))
        following.all_open(seconds=60)
        goes_on(image, tenant, following)
        image.data.fill()
        made = writers.count
        eventually(lambda: writers.have_made(made + 20), seconds=60)
        # A checkpoint flushes the data. If the flush fails, pages may be lost, so PostgreSQL stops and recovers from its write-ahead log.
        eventually(lambda: has_ended(image, "CHECKPOINT"), seconds=90)
        image.data.repair()
        image.start_postgres()
        goes_on(image, tenant, following)
        writers.stop()
        eventually(lambda: image.is_numbered(tenant), seconds=30)
        following.all_at(image.head(tenant), seconds=60)
        following.stop()
    assert_never_failed(following)
    assert_holds(image.history(tenant, [writers], following.readers))
