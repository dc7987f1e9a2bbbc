"""Collects numbers that change so often that an update of a metric at each change would cost too much. Once a second, adds them to the
metrics of the process."""

from __future__ import annotations

from collections.abc import Callable

from events import metrics
from events.stream.lag import Lag

# Sample only the first writes and the first streams of each second, because measuring costs time.
_SAMPLES_PER_SECOND = 50
BLOCKED_SECONDS = 0.01


class Measures:
    """Plain numbers that only the event loop changes."""

    __slots__ = ("bytes", "events", "lags_left", "replayed", "samples_left")

    def __init__(self) -> None:
        self.events = self.replayed = self.bytes = 0
        self.samples_left = self.lags_left = _SAMPLES_PER_SECOND

    def sample_lag(self, lag: Callable[[], Lag]) -> None:
        """Sample the lag of a stream, unless this second already has enough samples."""
        self.lags_left -= 1
        if self.lags_left >= 0:
            found = lag()
            metrics.LAG_EVENTS.observe(found.events)
            metrics.LAG_SECONDS.observe(found.ms / 1000)

    def may_sample(self) -> bool:
        """Tell whether to measure the duration of one more write in this second."""
        self.samples_left -= 1
        return self.samples_left >= 0

    def hand_over(self) -> None:
        """Add the collected values to the metrics of the process and reset them."""
        metrics.EVENTS.inc(self.events)
        metrics.REPLAY_EVENTS.inc(self.replayed)
        metrics.BYTES.inc(self.bytes)
        self.events = self.replayed = self.bytes = 0
        self.samples_left = self.lags_left = _SAMPLES_PER_SECOND


measures = Measures()
