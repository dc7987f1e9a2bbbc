"""Computes when a failed delivery is attempted again. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

# Upper limit for `Retry-After`, in seconds.
LONGEST_RETRY_AFTER_SECONDS = 3600.0


def delay_before_next(
    failed_attempts: int, delays: Sequence[float], *, jitter: float, chance: float, retry_after: float | None = None
) -> float | None:
    """Return the seconds to wait after failure number `failed_attempts` of a series, or None if no attempt is left.

    `jitter` is the largest fraction that is added to a delay, so that deliveries that failed together are not attempted again at the same
    time. `chance` (0 to 1) is the part of this fraction that is added now. `retry_after` is the destination's `Retry-After` in seconds: the
    result is at least this value, but a value above one hour is treated as one hour.
    """
    if failed_attempts > len(delays):
        return None
    delay = delays[failed_attempts - 1] * (1 + jitter * chance)
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, LONGEST_RETRY_AFTER_SECONDS))


def attempts_in_series(delays: Sequence[float]) -> int:
    """Return the number of attempts of a delivery before it becomes a dead letter."""
    return len(delays) + 1
