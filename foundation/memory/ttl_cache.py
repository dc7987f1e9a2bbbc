"""Fast path: what a process remembers for a moment, answers of the database, each with an age and a bound on how many. Pure.

The plain path is the `load` that a memory is given; an answer is never older than its age. Who answers on a host costs 0.5 µs
of processor time instead of 1,400 (`python -m benchmarks fast_paths`, docs/figures.md).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cold(LookupError):
    """Nothing fresh enough is remembered; ask again where reading the database is allowed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Remembered(Generic[Key, Value]):
    """Answers of `load`, kept for `seconds`. Safe to share between threads; two that miss at once both load."""

    def __init__(
        self, load: Callable[[Key], Value], *, seconds: float, limit: int = 4096, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        # The oldest answer first.
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """How many answers take up room."""
        return len(self._entries)

    def warm(self, key: Key, *, max_age: float | None = None) -> Value:
        """Return what is remembered and no older than `max_age`, or raise `Cold`. Never loads."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= (self._seconds if max_age is None else min(max_age, self._seconds)):
            raise Cold
        return entry[1]

    def get(self, key: Key, *, max_age: float | None = None) -> Value:
        """Return what is remembered, or load it. What `load` raises is not remembered."""
        try:
            return self.warm(key, max_age=max_age)
        except Cold:
            pass
        # Taken before the load: an answer is as old as the moment it was asked for.
        asked_at = self._clock()
        value = self._load(key)
        self._keep(key, value, asked_at)
        return value

    def load_many(self, keys: Collection[Key], load: Callable[[Collection[Key]], Mapping[Key, Value]]) -> dict[Key, Value]:
        """Load all keys in one go and remember them; whatever `load` returns for a key is what the other one would."""
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
            # An answer past its age is of no use: whoever asked once would take up room until the limit is reached.
            too_old = self._clock() - self._seconds
            while self._entries and (len(self._entries) > self._limit or next(iter(self._entries.values()))[0] <= too_old):
                self._entries.popitem(last=False)
