"""The rate limiter, which processes share through Redis and which also works without Redis."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings as project

from authapi.edge import throttling
from authapi.edge.throttling import Counters, hit, hit_async, is_full
from tests.ports import free_port

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def tenant_id() -> str:
    return f"t-{secrets.token_hex(6)}"


@pytest.fixture
def hung_redis() -> Iterator[str]:
    """Return the URL of a server that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


@pytest.fixture
def dead_redis() -> str:
    """Return a URL at which no server listens."""
    port = free_port()
    return f"redis://127.0.0.1:{port}/0"


def test_a_window_allows_the_burst_and_counts_down(tenant_id: str, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 3, 1
    with time_machine.travel(BEGIN, tick=False):
        rates = [hit(tenant_id, "token") for _ in range(5)]
    assert [(rate.remaining, rate.is_exceeded) for rate in rates] == [(2, False), (1, False), (0, False), (0, True), (0, True)]
    assert rates[0].limit == 3
    assert rates[0].reset == int(BEGIN.timestamp()) // 3 * 3 + 3


def test_the_next_window_starts_with_a_new_count(tenant_id: str, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 1, 1
    with time_machine.travel(BEGIN, tick=False):
        hit(tenant_id, "token")
        assert hit(tenant_id, "token").is_exceeded
    with time_machine.travel(BEGIN + timedelta(seconds=1), tick=False):
        assert not hit(tenant_id, "token").is_exceeded


def test_each_endpoint_of_each_tenant_has_a_separate_limit(tenant_id: str, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 1, 1
    with time_machine.travel(BEGIN, tick=False):
        hit(tenant_id, "token")
        assert not hit(tenant_id, "jwks").is_exceeded
        assert not hit(f"{tenant_id}-b", "token").is_exceeded


def test_a_full_window_is_recognized_without_counting_a_request(tenant_id: str, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 1, 1
    with time_machine.travel(BEGIN, tick=False):
        hit(tenant_id, "token")
        assert is_full(tenant_id, "token") is None
        hit(tenant_id, "token")
        full = is_full(tenant_id, "token")
    assert full is not None
    assert (full.is_exceeded, full.remaining) == (True, 0)


def test_two_processes_share_one_count(tenant_id: str) -> None:
    first, second = (Counters(project.REDIS_URL, prefix=project.REDIS_PREFIX) for _ in range(2))
    assert first.increase(tenant_id, seconds=60) == 1
    assert second.increase(tenant_id, seconds=60) == 2
    assert first.read(tenant_id) == 2


def test_a_disabled_limiter_still_sends_its_headers(tenant_id: str, settings: Any) -> None:
    settings.RATE_LIMITS_ENABLED, settings.RATE_LIMIT_BURST = False, 2
    rates = [hit(tenant_id, "token") for _ in range(4)]
    assert not any(rate.is_exceeded for rate in rates)
    assert rates[-1].headers.keys() == {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}


def test_counters_in_the_process_replace_an_unavailable_redis(tenant_id: str, dead_redis: str) -> None:
    counters = Counters(dead_redis, prefix="test")
    assert [counters.increase(tenant_id, seconds=60) for _ in range(3)] == [1, 2, 3]
    assert counters.is_open


def test_a_hanging_redis_delays_many_requests_by_only_one_timeout(tenant_id: str, hung_redis: str, settings: Any) -> None:
    settings.REDIS_TIMEOUT_SECONDS = 0.2
    counters = Counters(hung_redis, prefix="test")
    started = time.monotonic()
    assert [counters.increase(tenant_id, seconds=60) for _ in range(50)] == list(range(1, 51))
    assert time.monotonic() - started < 1.0


def test_the_limiter_queries_redis_again_five_seconds_after_a_failure(tenant_id: str, dead_redis: str) -> None:
    now = [100.0]
    counters = Counters(dead_redis, prefix="test", clock=lambda: now[0])
    counters.increase(tenant_id, seconds=60)
    now[0] += 4.9
    assert counters.is_open
    now[0] += 0.2
    assert not counters.is_open
    # Redis is available again.
    counters._shared = Counters(project.REDIS_URL, prefix=project.REDIS_PREFIX)._shared
    assert counters.increase(tenant_id, seconds=60) == 1
    assert not counters.is_open


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("server", ["dead_redis", "hung_redis"])
def test_requests_are_answered_and_limited_without_redis(
    server: str, request: pytest.FixtureRequest, tenant_id: str, settings: Any
) -> None:
    settings.REDIS_URL = request.getfixturevalue(server)
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 2, 1
    throttling.counters.cache_clear()
    with time_machine.travel(BEGIN, tick=False):
        rates = [asyncio.run(hit_async(tenant_id, "token")) for _ in range(3)]
    assert [rate.is_exceeded for rate in rates] == [False, False, True]
