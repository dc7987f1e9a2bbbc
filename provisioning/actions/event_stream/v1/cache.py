"""`api.cache`: short-lived strings per action in the memory of the worker process. Pure except for the given clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_ENTRIES = 20
MAX_KEY_BYTES = 64
MAX_VALUE_BYTES = 4096
MAX_TOTAL_BYTES = 8192
DEFAULT_TTL_SECONDS = 15 * 60.0
MAX_TTL_SECONDS = 24 * 3600.0
_MAX_ACTIONS = 1000


class CacheLimitReached(ValueError):
    """The cache of an action is limited to 20 entries, 64 bytes per key, 4 kB per value, and 8 kB in total."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass
class _Entries:
    values: dict[str, tuple[str, float]] = field(default_factory=dict)

    def drop_expired(self, now: float) -> None:
        self.values = {key: entry for key, entry in self.values.items() if entry[1] > now}

    def size(self) -> int:
        return sum(len(key.encode()) + len(value.encode()) for key, (value, _) in self.values.items())


class ActionCache:
    """The entries of one action; `clock` returns the time in Unix seconds."""

    def __init__(self, entries: _Entries, clock: Callable[[], float]) -> None:
        self._entries = entries
        self._clock = clock

    def get(self, key: str) -> str | None:
        """Return the string stored under `key`, or None."""
        self._entries.drop_expired(self._clock())
        found = self._entries.values.get(key)
        return found[0] if found else None

    def set(self, key: str, value: str, *, ttl: float | None = None, expires_at: float | None = None) -> None:
        """Store `value` for `ttl` seconds or until `expires_at` (in Unix seconds). If both are given, the earlier end applies.

        Raises `CacheLimitReached`.
        """
        now = self._clock()
        self._entries.drop_expired(now)
        if len(key.encode()) > MAX_KEY_BYTES or len(value.encode()) > MAX_VALUE_BYTES:
            raise CacheLimitReached
        previous = self._entries.values.pop(key, None)
        if ttl is None and expires_at is None:
            ttl = DEFAULT_TTL_SECONDS
        ends = [now + MAX_TTL_SECONDS, None if ttl is None else now + ttl, expires_at]
        self._entries.values[key] = (value, min(end for end in ends if end is not None))
        if len(self._entries.values) > MAX_ENTRIES or self._entries.size() > MAX_TOTAL_BYTES:
            del self._entries.values[key]
            if previous is not None:
                self._entries.values[key] = previous
            raise CacheLimitReached

    def delete(self, key: str) -> None:
        """Remove `key`."""
        self._entries.values.pop(key, None)


class ProcessCaches:
    """Caches of the actions that ran in this process; the least recently used cache is removed first."""

    def __init__(self) -> None:
        self._actions: OrderedDict[str, _Entries] = OrderedDict()

    def of(self, action_id: str, clock: Callable[[], float]) -> ActionCache:
        """Return the cache of an action."""
        entries = self._actions.setdefault(action_id, _Entries())
        self._actions.move_to_end(action_id)
        while len(self._actions) > _MAX_ACTIONS:
            self._actions.popitem(last=False)
        return ActionCache(entries, clock)
