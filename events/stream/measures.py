"""Counts of a process that would cost too much to hand over one by one: collected here, handed over once a second."""

from __future__ import annotations

from collections.abc import Callable

from events import metrics
from events.stream.lag import Lag

# Of a busy second only the first writes are timed, and only the first streams looked at: a sample is worth its price once.
_SAMPLES_PER_SECOND = 50
BLOCKED_SECONDS = 0.01


class Measures:
    """Plain numbers that the event loop alone changes."""

    __slots__ = ("bytes", "events", "lags_left", "replayed", "samples_left")

    def __init__(self) -> None:
        self.events = self.replayed = self.bytes = 0
        self.samples_left = self.lags_left = _SAMPLES_PER_SECOND

    def sample_lag(self, lag: Callable[[], Lag]) -> None:
        """Note how far a stream is behind, unless enough streams were looked at this second."""
        self.lags_left -= 1
        if self.lags_left >= 0:
            found = lag()
            metrics.LAG_EVENTS.observe(found.events)
            metrics.LAG_SECONDS.observe(found.ms / 1000)

    def may_sample(self) -> bool:
        """Tell whether one more write of this second is timed."""
        self.samples_left -= 1
        return self.samples_left >= 0

    def hand_over(self) -> None:
        """Add what was collected to the figures of the process and start again."""
        metrics.EVENTS.inc(self.events)
        metrics.REPLAY_EVENTS.inc(self.replayed)
        metrics.BYTES.inc(self.bytes)
        self.events = self.replayed = self.bytes = 0
        self.samples_left = self.lags_left = _SAMPLES_PER_SECOND


measures = Measures()
