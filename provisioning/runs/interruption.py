"""Ending code of others in time: an interval timer of the process, whose signal raises in the middle of whatever runs.

It reaches an endless loop, a sleep and a blocking read. It does not reach code that never returns to the interpreter (a
regular expression that explodes), other threads, and code that catches `BaseException` for ever: for those the task is
interrupted at 20 s and its process killed at 30 s by the worker. Signals belong to the main thread, where a worker runs its tasks;
elsewhere nothing is interrupted and the deadline is only told.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

# Raised again and again: what was caught once must not run on.
_AGAIN_SECONDS = 0.25
# A timer of 0 would be none.
_SOONEST_SECONDS = 0.001


class TimeSpent(BaseException):
    """The time of this run is spent. No `Exception`, so that the usual `except` of foreign code lets it pass."""


class TimeLimit:
    """A block that raises `TimeSpent` inside itself once `seconds` have passed; None is no limit.

    What was set before is in place again afterwards. The alarm may strike on the very way out, before anything could be done
    about it: whoever catches `TimeSpent` calls `stop` once more.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._is_running = False

    def __enter__(self) -> None:
        if self._seconds is None or threading.current_thread() is not threading.main_thread():
            return
        self._started = time.monotonic()
        # Before the alarm is set, which may strike before the next line is done.
        self._left, self._interval = signal.getitimer(signal.ITIMER_REAL)
        self._handler = signal.signal(signal.SIGALRM, _raise)
        self._is_running = True
        signal.setitimer(signal.ITIMER_REAL, max(self._seconds, _SOONEST_SECONDS), _AGAIN_SECONDS)

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the timer away, also when it strikes during that; only then let `TimeSpent` go on."""
        spent: TimeSpent | None = None
        while self._is_running:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, self._handler)
                self._is_running = False
                if self._left:
                    due = self._left - (time.monotonic() - self._started)
                    signal.setitimer(signal.ITIMER_REAL, max(due, _SOONEST_SECONDS), self._interval)
            except TimeSpent as error:
                spent = error
        if spent is not None:
            raise spent


def _raise(_number: int, _frame: Any) -> None:
    raise TimeSpent
