"""Suspends calls to a failed server for a while, so that an outage does not cost every caller a timeout."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import redis

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_SECONDS = 5.0


class OutageGuard:
    """Tracks when calls are suspended: for `seconds` after a failure, twice as long after each further failure, up to `longest`."""

    def __init__(self, seconds: float = _SECONDS, *, longest: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._first = seconds
        self._longest = seconds if longest is None else longest
        self._clock = clock
        self._pause = 0.0
        self._asked_again_at = 0.0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether calls to the server are suspended."""
        return self._clock() < self._asked_again_at

    def failed(self) -> float:
        """Note a failure of the server; return the seconds of suspension."""
        self._pause = min(max(self._pause * 2, self._first), self._longest)
        self._asked_again_at = self._clock() + self._pause
        return self._pause

    def answered(self) -> None:
        """End the suspension, because the server answered."""
        self._pause = self._asked_again_at = 0.0

    def ask(self, shared: Callable[[], Answer], own: Callable[[], Answer]) -> Answer:
        """Return the answer of Redis, or the answer of this process while Redis is unavailable. Never fails because of Redis."""
        if not self._may_try():
            return own()
        try:
            answer = shared()
        except (redis.RedisError, OSError) as error:
            # This error is expected while Redis is unavailable. The guard now suspends calls for a while.
            logger.warning("Redis is suspended for %.0f seconds after an error: %s", self.failed(), type(error).__name__)
            return own()
        self.answered()
        return answer

    def _may_try(self) -> bool:
        if self._asked_again_at == 0.0:
            return True
        with self._lock:
            if self._clock() < self._asked_again_at:
                return False
            # This thread tries the server. Meanwhile, all other threads continue without the server.
            self._asked_again_at = self._clock() + self._first
            return True
