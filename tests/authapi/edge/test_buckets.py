"""Token buckets allow a burst, and then refill one token at a time. Processes share a bucket through Redis and also work without Redis."""

from __future__ import annotations

import secrets
import socket
import time
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
import time_machine
from django.conf import settings as project

from authapi.edge.buckets import Bucket, Buckets
from tests.ports import free_port

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
THREE = Bucket("test", 3, 10.0)


@pytest.fixture
def owner() -> tuple[str, ...]:
    return (secrets.token_hex(6), "somebody")


@pytest.fixture(params=["redis", "nothing"])
def buckets(request: pytest.FixtureRequest) -> Buckets:
    if request.param == "redis":
        return Buckets(project.REDIS_URL, prefix=project.REDIS_PREFIX)
    port = free_port()
    return Buckets(f"redis://127.0.0.1:{port}/0", prefix="test")


def test_a_bucket_allows_as_many_requests_as_its_size_and_then_refuses(buckets: Buckets, owner: tuple[str, ...]) -> None:
    with time_machine.travel(BEGIN, tick=False):
        assert [buckets.take(THREE, owner, 1) for _ in range(5)] == [True, True, True, False, False]


def test_a_bucket_refills_one_token_at_a_time(buckets: Buckets, owner: tuple[str, ...]) -> None:
    with time_machine.travel(BEGIN, tick=False) as clock:
        taken = [buckets.take(THREE, owner, 1) for _ in range(3)]
        clock.shift(timedelta(seconds=9.9))
        early = buckets.take(THREE, owner, 1)
        clock.shift(timedelta(seconds=0.2))
        taken += [buckets.take(THREE, owner, 1), not buckets.take(THREE, owner, 1)]
    assert not early
    assert all(taken)


def test_a_refused_request_takes_no_token(buckets: Buckets, owner: tuple[str, ...]) -> None:
    with time_machine.travel(BEGIN, tick=False) as clock:
        for _ in range(50):
            buckets.take(THREE, owner, 1)
        clock.shift(timedelta(seconds=10))
        assert buckets.take(THREE, owner, 1)


def test_checking_a_bucket_takes_no_token_and_recognizes_an_empty_bucket(buckets: Buckets, owner: tuple[str, ...]) -> None:
    with time_machine.travel(BEGIN, tick=False):
        assert all(buckets.take(THREE, owner, 0) for _ in range(10))
        for _ in range(3):
            assert buckets.take(THREE, owner, 1)
        assert not buckets.take(THREE, owner, 0)


def test_owners_whose_joined_parts_are_the_same_text_never_share_a_bucket(buckets: Buckets) -> None:
    first = secrets.token_hex(6)
    with time_machine.travel(BEGIN, tick=False):
        for _ in range(3):
            buckets.take(THREE, (first, "ab"), 1)
        assert not buckets.take(THREE, (first, "ab"), 1)
        assert buckets.take(THREE, (f"{first}a", "b"), 1)


def test_concurrent_requests_in_several_processes_cannot_exceed_the_size_of_the_bucket(owner: tuple[str, ...]) -> None:
    parties = [Buckets(project.REDIS_URL, prefix=project.REDIS_PREFIX) for _ in range(4)]
    taken: list[bool] = []

    def take(party: Buckets) -> None:
        taken.extend(party.take(THREE, owner, 1) for _ in range(5))

    threads = [Thread(target=take, args=(party,)) for party in parties]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 3


def test_a_redis_server_that_never_answers_costs_one_timeout(owner: tuple[str, ...], settings: Any) -> None:
    settings.REDIS_TIMEOUT_SECONDS = 0.2
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        hung = Buckets(f"redis://127.0.0.1:{listener.getsockname()[1]}/0", prefix="test")
        started = time.monotonic()
        assert sum(hung.take(THREE, owner, 1) for _ in range(50)) == 3
        assert time.monotonic() - started < 1.5
