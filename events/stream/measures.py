"""Counts of a process that would cost too much to hand over one by one: collected here, handed over once a second."""

from __future__ import annotations

from events import metrics

# Of a busy second only the first writes are timed.
_SAMPLES_PER_SECOND = 50
BLOCKED_SECONDS = 0.01


class Measures:
    """Plain numbers that the event loop alone changes."""

    __slots__ = ("bytes", "events", "replayed", "samples_left")

    def __init__(self) -> None:
        self.events = self.replayed = self.bytes = 0
        self.samples_left = _SAMPLES_PER_SECOND

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
        self.samples_left = _SAMPLES_PER_SECOND


measures = Measures()
