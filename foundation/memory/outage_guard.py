"""Leaves Redis alone for a while after it failed, and answers out of this process meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import redis

Answer = TypeVar("Answer")

_SECONDS = 5.0


class OutageGuard:
    """After one failure this process answers for itself; 5 s later one thread tries again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._closed_again_at = 0.0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether Redis is being left alone."""
        return self._clock() < self._closed_again_at

    def ask(self, shared: Callable[[], Answer], own: Callable[[], Answer]) -> Answer:
        """Return the answer of Redis, or that of this process while Redis is away. Never fails because of Redis."""
        if not self._may_try():
            return own()
        try:
            answer = shared()
        except (redis.RedisError, OSError):
            # Expected whenever Redis is away: from here on it is left alone for a while.
            self._closed_again_at = self._clock() + _SECONDS
            return own()
        self._closed_again_at = 0.0
        return answer

    def _may_try(self) -> bool:
        if self._closed_again_at == 0.0:
            return True
        with self._lock:
            if self._clock() < self._closed_again_at:
                return False
            # One thread probes; the others go on counting here until it knows.
            self._closed_again_at = self._clock() + _SECONDS
            return True
