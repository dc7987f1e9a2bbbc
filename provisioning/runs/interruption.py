"""Interrupts installed actions at their deadline: the signal of an interval timer raises an exception in the running code.

The signal interrupts endless loops, sleeps and blocking reads. It does not interrupt other threads, code that never returns to the
interpreter (such as a regular expression with catastrophic backtracking), or code that always catches `BaseException`. In these cases,
Celery interrupts the task at 20 s and kills its process at 30 s. Signals are delivered to the main thread, in which a worker runs its
tasks; in other threads the deadline is not enforced.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

# Seconds between repeated signals, which stop code that has caught the first exception.
_AGAIN_SECONDS = 0.25
# A timer of 0 seconds would be disabled.
_SOONEST_SECONDS = 0.001


class TimeSpent(BaseException):
    """The run has reached its deadline. This class is not an `Exception`, so that `except Exception` in the action does not catch it."""


class TimeLimit:
    """A context manager that raises `TimeSpent` in its block after `seconds`; None means no limit.

    Restores the previous timer and handler afterwards. The signal may arrive while the block is being left, so the code that
    catches `TimeSpent` must call `stop` again.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._is_running = False

    def __enter__(self) -> None:
        if self._seconds is None or threading.current_thread() is not threading.main_thread():
            return
        self._started = time.monotonic()
        # `_is_running` is set before the timer is started, because the signal may arrive before the next line runs.
        self._left, self._interval = signal.getitimer(signal.ITIMER_REAL)
        self._handler = signal.signal(signal.SIGALRM, _raise)
        self._is_running = True
        signal.setitimer(signal.ITIMER_REAL, max(self._seconds, _SOONEST_SECONDS), _AGAIN_SECONDS)

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the timer, even if its signal arrives meanwhile. Raise `TimeSpent` only after the timer is stopped."""
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
