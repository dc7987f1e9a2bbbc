"""How long to wait before the next connection. Pure: chance and time are arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_SPREAD = 0.1


@dataclass
class Backoff:
    """Pauses between connections: what the server wishes after progress, growing and jittered ones after failures in a row."""

    chance: Callable[[], float]
    base_seconds: float = 0.5
    longest_seconds: float = 30.0
    # Also the least distance between two connections of which the first was good for something.
    retry_seconds: float = 1.0
    failures: int = field(default=0, init=False)

    def wish(self, retry_ms: int) -> None:
        """Take over the `retry:` of the server, within reason."""
        self.retry_seconds = min(retry_ms / 1000, self.longest_seconds)

    def after_progress(self) -> float:
        """Return the pause after a connection that delivered something: an ordinary end, no failure."""
        self.failures = 0
        return self._spread(self.retry_seconds)

    def after_failure(self, retry_after: float | None = None) -> float:
        """Return the pause after one more failure; never less than the server's `Retry-After` or `retry:`."""
        # Full jitter: clients that lost the same server do not come back together.
        ceiling = min(self.base_seconds * 2.0 ** min(self.failures, 16), self.longest_seconds)
        self.failures += 1
        floor = self._spread(self.retry_seconds if retry_after is None else max(retry_after, self.retry_seconds))
        return floor + self.chance() * ceiling

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + _SPREAD * self.chance())
