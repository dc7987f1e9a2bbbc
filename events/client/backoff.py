"""Computes the pause before the next connection. Pure: the caller passes the source of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_SPREAD = 0.1


@dataclass
class Backoff:
    """Computes pauses: the server's `retry:` after a connection with progress, and growing pauses with jitter after failures in a row."""

    chance: Callable[[], float]
    base_seconds: float = 0.5
    longest_seconds: float = 30.0
    # The pause after a connection that made progress, and the shortest pause after a failure; both before jitter is added.
    retry_seconds: float = 1.0
    failures: int = field(default=0, init=False)

    def wish(self, retry_ms: int) -> None:
        """Use the `retry:` of the server from now on, but at most `longest_seconds`."""
        self.retry_seconds = min(retry_ms / 1000, self.longest_seconds)

    def after_progress(self) -> float:
        """Return the pause in seconds after a connection that made progress. The end of such a connection is not counted as a failure."""
        self.failures = 0
        return self._spread(self.retry_seconds)

    def after_failure(self, retry_after: float | None = None) -> float:
        """Return the pause in seconds after one more failure; at least the server's `Retry-After` or `retry:`."""
        # With full jitter, clients that lost the same server do not reconnect at the same time.
        ceiling = min(self.base_seconds * 2.0 ** min(self.failures, 16), self.longest_seconds)
        self.failures += 1
        floor = self._spread(self.retry_seconds if retry_after is None else max(retry_after, self.retry_seconds))
        return floor + self.chance() * ceiling

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + _SPREAD * self.chance())
