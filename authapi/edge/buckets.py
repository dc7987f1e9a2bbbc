"""Token buckets: a caller can take a number of tokens at once, and then one more token per interval.

All processes share the buckets in Redis. While Redis is unavailable, each process has its own buckets.

The state of a bucket is one time: when it will be full again (generic cell rate algorithm). A bucket needs one key in Redis, and taking
tokens needs one round trip.

Fixed windows would be weaker. Just before the end of a window, a client could use the whole limit of this window. Just after it, the client
could use the whole limit of the next window.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from django.conf import settings

from foundation.memory.outage_guard import OutageGuard
from foundation.memory.redis_clients import redis_client

_OWN_LIMIT = 65_536
# KEYS: the bucket. ARGV: now, milliseconds per token, size, number of tokens to take. Takes all these tokens or none.
_SCRIPT = """
local now, each, size, taken = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local full = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
if full + math.max(taken, 1) * each - now > size * each then return 0 end
if taken > 0 then redis.call('SET', KEYS[1], string.format('%.0f', full + taken * each), 'PX', math.ceil(full + taken * each - now)) end
return 1
"""


@dataclass(frozen=True)
class Bucket:
    """A limit of `size` tokens at once, then one more token every `seconds`."""

    name: str
    size: int
    seconds: float

    def takes(self, *owner: str, count: int = 1) -> bool:
        """Take `count` tokens from the bucket of `owner`. If the bucket has fewer tokens, take nothing and return False."""
        return buckets().take(self, owner, count)

    def times(self, factor: int) -> Bucket:
        """Return a bucket with `factor` times the size and `factor` times the refill rate."""
        return self if factor == 1 else Bucket(f"{self.name}/{factor}", self.size * factor, self.seconds / factor)

    def has_one(self, *owner: str) -> bool:
        """Tell whether a token is available."""
        return buckets().take(self, owner, 0)

    def fill(self, *owner: str) -> None:
        """Refill the bucket of `owner`. While Redis is unavailable, this refills only the bucket of this process."""
        buckets().fill(self, owner)


class Buckets:
    """All buckets of this process: in Redis behind a guard, and in memory while Redis is unavailable."""

    def __init__(self, redis_url: str, *, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._prefix = prefix
        self._redis: Any = redis_client(redis_url)
        self._script: Any = self._redis.register_script(_SCRIPT)
        self._guard = OutageGuard(clock=clock)
        self._own: dict[str, float] = {}
        self._lock = Lock()

    def take(self, bucket: Bucket, owner: tuple[str, ...], count: int) -> bool:
        """Take `count` tokens. With 0, only check whether a token is available."""
        key = self._key(bucket, owner)
        now, each = time.time() * 1000, bucket.seconds * 1000
        return self._guard.ask(
            lambda: bool(self._script(keys=[key], args=[now, each, bucket.size, count])),
            lambda: self._take_here(key, now, each, bucket.size, count),
        )

    def fill(self, bucket: Bucket, owner: tuple[str, ...]) -> None:
        """Refill a bucket."""
        key = self._key(bucket, owner)
        with self._lock:
            self._own.pop(key, None)
        self._guard.ask(lambda: self._redis.delete(key), lambda: None)

    def _key(self, bucket: Bucket, owner: tuple[str, ...]) -> str:
        # Keys contain digests, which have a fixed length and do not reveal what users typed.
        digest = hashlib.sha256("\x00".join(owner).encode("utf-8", "replace")).hexdigest()
        return f"{self._prefix}:bucket:{bucket.name}:{digest}"

    def _take_here(self, key: str, now: float, each: float, size: int, count: int) -> bool:
        with self._lock:
            full = max(now, self._own.get(key, 0.0))
            if full + max(count, 1) * each - now > size * each:
                return False
            if count:
                self._make_room(now)
                self._own[key] = full + count * each
            return True

    def _make_room(self, now: float) -> None:
        if len(self._own) >= _OWN_LIMIT:
            self._own = {key: full for key, full in self._own.items() if full > now}
        if len(self._own) >= _OWN_LIMIT:
            self._own.pop(next(iter(self._own)))


@lru_cache(maxsize=1)
def buckets() -> Buckets:
    """Return the buckets of this process, created at the first call."""
    return Buckets(settings.REDIS_URL, prefix=settings.REDIS_PREFIX)
