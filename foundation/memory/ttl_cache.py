"""Fast path: short-lived caches of database answers, each with a maximum age and a maximum size. Pure.

The plain path is the cache's `load`; an answer is never older than its maximum age. Finding the tenant of a host costs 0.5 µs of processor
time instead of 1,400 µs (`python -m benchmarks fast_paths`, docs/figures.md). Nothing is loaded on an event loop. There, a missing answer
raises `Missing`. A caller that uses `foundation.memory.executor.remembered` gets the answer from a load in a thread, one load for all
concurrent requests.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cold(LookupError):
    """No fresh answer is cached; call again where database queries are allowed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Missing(Cold):
    """The answer is not cached, and the caller is on an event loop."""

    def __init__(self, memory: Remembered[Any, Any], key: Any) -> None:
        super().__init__()
        self.memory, self.key = memory, key


class Remembered(Generic[Key, Value]):
    """Answers of `load`, kept for `seconds`. Thread-safe, but two concurrent calls for a missing answer both call `load`."""

    def __init__(
        self, load: Callable[[Key], Value], *, seconds: float, limit: int = 4096, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        # In order of age, the oldest first.
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The number of cached answers."""
        return len(self._entries)

    def warm(self, key: Key, *, max_age: float | None = None) -> Value:
        """Return the cached answer if it is no older than `max_age` seconds, or raise `Cold`. Never loads."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= (self._seconds if max_age is None else min(max_age, self._seconds)):
            raise Cold
        return entry[1]

    def get(self, key: Key, *, max_age: float | None = None) -> Value:
        """Return the cached answer, or load it. Exceptions of `load` are not cached.

        On an event loop, this function never loads: without a fresh answer it raises `Missing`, or `Cold` if the call has a `max_age`.
        """
        try:
            return self.warm(key, max_age=max_age)
        except Cold:
            if asyncio._get_running_loop() is not None:
                raise Missing(self, key) if max_age is None else Cold from None
        # The age of an answer counts from the time before the load.
        asked_at = self._clock()
        value = self._load(key)
        self._keep(key, value, asked_at)
        return value

    def load_many(self, keys: Collection[Key], load: Callable[[Collection[Key]], Mapping[Key, Value]]) -> dict[Key, Value]:
        """Load all keys at once and cache them; `load` must return the same answers as the `load` of this cache."""
        asked_at = self._clock()
        found = load(keys)
        for key in keys:
            self._keep(key, found[key], asked_at)
        return {key: found[key] for key in keys}

    def forget(self, key: Key) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def _keep(self, key: Key, value: Value, asked_at: float) -> None:
        with self._lock:
            self._entries[key] = (asked_at, value)
            self._entries.move_to_end(key)
            # Expired entries are removed eagerly; otherwise one-time keys would fill the cache.
            too_old = self._clock() - self._seconds
            while self._entries and (len(self._entries) > self._limit or next(iter(self._entries.values()))[0] <= too_old):
                self._entries.popitem(last=False)
