"""The rate limiter for tenants. It counts in Redis, or in this process while Redis is unavailable. A failure of Redis causes no refusal.

The length of a window is the time that the burst takes at the sustained rate (by default 200 requests in 2 s). Windows start at multiples
of their length. So a process computes the key of the current window from the clock, and one command counts a request and returns the
count. Small inaccuracies at the start and the end of a window are accepted. A busy process reserves several places with one command
(`rate_leases`). `address_rates` counts IP addresses separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil

from django.conf import settings
from limits.storage import MemoryStorage, RedisStorage, Storage

from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import Figure, figure_of
from authapi.edge.rate_leases import RateLeases
from foundation.memory import executor
from foundation.memory.outage_guard import OutageGuard
from foundation.memory.redis_clients import redis_pool
from foundation.memory.ttl_cache import Cold

_leases = RateLeases()


@dataclass(frozen=True)
class Rate:
    """The state of a rate: `limit` per window, the remaining requests, and the start of the next window (Unix seconds)."""

    limit: int
    remaining: int
    reset: int
    is_exceeded: bool = False

    @classmethod
    def of_empty(cls, bucket: Bucket, *, count: int = 1) -> Rate:
        """Return the rate of a bucket with fewer than `count` tokens. The rate resets when the bucket has had time to refill `count`
        tokens."""
        return cls(limit=bucket.size, remaining=0, reset=ceil(time.time() + count * bucket.seconds), is_exceeded=True)

    @property
    def used_up(self) -> Rate:
        """The same rate with no requests left, for a request that another limit refused."""
        return replace(self, remaining=0, is_exceeded=True)

    @property
    def headers(self) -> dict[str, str]:
        """The three headers of every response, and `Retry-After` if the request was refused."""
        headers = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }
        if self.is_exceeded:
            headers["Retry-After"] = str(max(1, self.reset - int(time.time())))
        return headers


@dataclass(frozen=True, slots=True)
class Window:
    """The current window: its number (the first window began in 1970), its length in seconds, and its limit."""

    number: int
    seconds: int
    limit: int

    @classmethod
    def now(cls, figure: Figure, *, factor: int = 1) -> Window:
        """Return the current window of a figure, with `factor` times its limit."""
        seconds = figure.seconds
        return cls(int(time.time()) // seconds, seconds, figure.burst * factor)

    def key(self, tenant_id: str, endpoint: str) -> str:
        return f"{tenant_id}/{endpoint}/{self.number}"

    def rate(self, count: int) -> Rate:
        """Return the rate after `count` requests."""
        reset = (self.number + 1) * self.seconds
        return Rate(limit=self.limit, remaining=max(0, self.limit - count), reset=reset, is_exceeded=count > self.limit)


class Counters:
    """Counters in Redis behind a guard: after a failure, this process counts in memory and tries Redis again 5 s later."""

    def __init__(self, redis_url: str, *, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._guard = OutageGuard(clock=clock)
        self._shared = _redis_storage(redis_url, prefix)
        self._own: Storage = MemoryStorage()

    @property
    def is_open(self) -> bool:
        """Whether calls to Redis are paused after a failure."""
        return self._guard.is_open

    def increase(self, key: str, *, seconds: int, amount: int = 1) -> int:
        """Add `amount` and return the count. A key expires `seconds` after it was created."""
        return int(self._ask(lambda storage: storage.incr(key, seconds, amount=amount)))

    def increase_or(self, key: str, *, seconds: int, amount: int, otherwise: int) -> int:
        """Like `increase`. While Redis is unavailable, count nothing and return `otherwise`."""
        return self._guard.ask(lambda: int(self._shared.incr(key, seconds, amount=amount)), lambda: otherwise)

    def read(self, key: str) -> int:
        return int(self._ask(lambda storage: storage.get(key)))

    def _ask(self, question: Callable[[Storage], int]) -> int:
        return self._guard.ask(lambda: question(self._shared), lambda: question(self._own))


def _redis_storage(url: str, prefix: str) -> RedisStorage:
    return RedisStorage("redis://", connection_pool=redis_pool(url), key_prefix=f"{prefix}:limits")


@lru_cache(maxsize=1)
def counters() -> Counters:
    """Return the counters of this process, created at the first call."""
    return Counters(settings.REDIS_URL, prefix=settings.REDIS_PREFIX)


def hit(tenant_id: str, endpoint: str) -> Rate:
    """Count one request of a tenant to an endpoint. Thread-safe. Takes at most 200 ms."""
    window = Window.now(figure_of(endpoint))
    place = _held(tenant_id, endpoint, window)
    if place is not None:
        return window.rate(place)
    key, seconds = window.key(tenant_id, endpoint), window.seconds + 1

    def take(amount: int) -> int:
        return counters().increase(key, seconds=seconds, amount=amount)

    return window.rate(_leases.taken(f"{tenant_id}/{endpoint}", window.number, window.limit, take))


class NoPlace(Cold):
    """This process has no reserved place in the window, so Redis must be called."""


def hit_at_once(tenant_id: str, endpoint: str) -> Rate:
    """Like `hit`, if this process has a reserved place. Otherwise raises `NoPlace` and counts nothing."""
    window = Window.now(figure_of(endpoint))
    place = _held(tenant_id, endpoint, window)
    if place is None:
        raise NoPlace
    return window.rate(place)


async def hit_async(tenant_id: str, endpoint: str) -> Rate:
    """Like `hit`: runs directly if this process has a reserved place, otherwise in a thread."""
    try:
        return hit_at_once(tenant_id, endpoint)
    except NoPlace:
        return await executor.run(partial(hit, tenant_id, endpoint))


def is_full(tenant_id: str, endpoint: str) -> Rate | None:
    """Return the rate of a tenant if this process knows that the tenant has no requests left, otherwise None. Makes no call to Redis."""
    window = Window.now(figure_of(endpoint))
    if settings.RATE_LIMITS_ENABLED and _leases.is_full(f"{tenant_id}/{endpoint}", window.number, window.limit):
        return window.rate(window.limit + 1)
    return None


def _held(tenant_id: str, endpoint: str, window: Window) -> int | None:
    if not settings.RATE_LIMITS_ENABLED:
        return 0
    return _leases.held(f"{tenant_id}/{endpoint}", window.number, window.limit)
