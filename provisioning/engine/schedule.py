"""When a failed delivery is tried again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

# A destination may ask for patience, but not for more than this.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def delay_before_next(
    failed_attempts: int, delays: Sequence[float], *, jitter: float, chance: float, retry_after: float | None = None
) -> float | None:
    """Return the seconds to wait after the `failed_attempts`th failure of a series, or None when no try is left.

    `jitter` is the largest share added to a delay and `chance` (0 to 1) how much of it is taken, so that deliveries
    that failed together do not come back together. What the destination asked for in `Retry-After` is the least
    waited, clamped to an hour.
    """
    if failed_attempts > len(delays):
        return None
    delay = delays[failed_attempts - 1] * (1 + jitter * chance)
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, LONGEST_RETRY_AFTER_SECONDS))


def attempts_in_series(delays: Sequence[float]) -> int:
    """Return how often a delivery is tried before it becomes a dead letter."""
    return len(delays) + 1
