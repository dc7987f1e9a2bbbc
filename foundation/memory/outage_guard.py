"""Leaves a server alone for a while after it failed, so that an outage does not cost every caller a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import redis

Answer = TypeVar("Answer")

_SECONDS = 5.0


class OutageGuard:
    """Says when a server is left alone: for `seconds` after a failure, twice as long after each further one, up to `longest`."""

    def __init__(self, seconds: float = _SECONDS, *, longest: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._first = seconds
        self._longest = seconds if longest is None else longest
        self._clock = clock
        self._pause = 0.0
        self._asked_again_at = 0.0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether the server is being left alone."""
        return self._clock() < self._asked_again_at

    def failed(self) -> float:
        """Note that the server failed; return for how many seconds it is left alone."""
        self._pause = min(max(self._pause * 2, self._first), self._longest)
        self._asked_again_at = self._clock() + self._pause
        return self._pause

    def answered(self) -> None:
        """Note that the server answered."""
        self._pause = self._asked_again_at = 0.0

    def ask(self, shared: Callable[[], Answer], own: Callable[[], Answer]) -> Answer:
        """Return the answer of Redis, or that of this process while Redis is away. Never fails because of Redis."""
        if not self._may_try():
            return own()
        try:
            answer = shared()
        except (redis.RedisError, OSError):
            # Expected whenever Redis is away: from here on it is left alone for a while.
            self.failed()
            return own()
        self.answered()
        return answer

    def _may_try(self) -> bool:
        if self._asked_again_at == 0.0:
            return True
        with self._lock:
            if self._clock() < self._asked_again_at:
                return False
            # One thread probes; the others go on without the server until it knows.
            self._asked_again_at = self._clock() + self._first
            return True
