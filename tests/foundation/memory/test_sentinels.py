"""The choice of the Redis master from the answers of several sentinels, and the refusal of a connection to a replica."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from foundation.memory.redis_clients import redis_client
from foundation.memory.sentinel_address import sentinel_address
from foundation.memory.sentinels import NotTheMaster, View, chosen, is_agreed, master_pool
from tests.faults.conftest import RedisServer

OLD, NEW = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


def test_the_newest_configuration_is_used_although_a_restarted_sentinel_has_an_older_one() -> None:
    assert chosen([View(4, OLD, is_up=True), View(5, NEW, is_up=True)]) == NEW


def test_an_older_configuration_is_not_used_although_the_new_master_is_down() -> None:
    assert chosen([View(4, OLD, is_up=True), View(5, NEW, is_up=False)]) is None


def test_a_master_is_used_if_at_least_one_sentinel_can_reach_it() -> None:
    assert chosen([View(5, NEW, is_up=False), View(5, NEW, is_up=True)]) == NEW


def test_no_master_is_returned_if_no_sentinel_answers() -> None:
    assert chosen([]) is None


@pytest.mark.parametrize(
    ("views", "agreed"),
    [
        ([View(5, NEW, is_up=True)], False),
        ([View(5, NEW, is_up=True), View(4, OLD, is_up=True)], False),
        ([View(5, NEW, is_up=False), View(5, NEW, is_up=False)], False),
        ([View(5, NEW, is_up=True), View(4, OLD, is_up=True), View(5, NEW, is_up=True)], True),
    ],
)
def test_the_third_sentinel_is_skipped_only_if_two_sentinels_agree_on_a_reachable_master(views: list[View], agreed: bool) -> None:
    assert is_agreed(views, sentinels=3) is agreed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    running = RedisServer(tmp_path)
    yield running
    running.close()


def test_a_connection_to_a_replica_is_refused(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = master_pool(sentinel_address("redis+sentinel://127.0.0.1:1/main"), socket_timeout=1, socket_connect_timeout=1)
    # An outdated sentinel answers with the address of a replica.
    monkeypatch.setattr(pool.sentinel_manager, "discover_master", lambda _: ("127.0.0.1", server.port))
    client = redis.Redis(connection_pool=pool)
    assert client.ping()
    pool.disconnect()

    server.client.slaveof("127.0.0.1", 1)

    with pytest.raises(NotTheMaster):
        client.ping()


def test_a_client_fails_immediately_if_no_sentinel_can_be_reached() -> None:
    with pytest.raises(redis.ConnectionError, match="no sentinel names a reachable master 'main'"):
        redis_client("redis+sentinel://127.0.0.1:1/main").ping()
