"""The longest time from the commit of an event to the final state of its delivery, computed from the settings of the delivery engine."""

from __future__ import annotations

from collections.abc import Sequence


def longest_seconds(*, delays: Sequence[float], jitter: float, lease: float, nudge: float, sweep: float) -> float:
    """Return the seconds after which an event is delivered, skipped or a dead letter, if no earlier event of its document is waiting.

    Each attempt lasts at most its lease, even if its worker is killed. A message makes a worker start an attempt. If this message is lost,
    the engine regards it as lost after `nudge` seconds, and the next sweep then sends another message, which starts the attempt. Before the
    first attempt, the message that makes a worker dispatch the stream can also be lost. A hold of the stream and a `Retry-After` of the
    destination prolong the time.
    """
    attempts = len(delays) + 1
    return (attempts + 1) * (nudge + sweep) + attempts * lease + sum(delays) * (1 + jitter)
