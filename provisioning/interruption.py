"""Ending code of others in time: an interval timer of the process, whose signal raises in the middle of whatever runs.

It reaches an endless loop, a sleep and a blocking read. It does not reach code that never returns to the interpreter (a
regular expression that explodes), other threads, and code that catches `BaseException` for ever: for those the task is
interrupted at 20 s and its process killed at 30 s by the worker. Signals belong to the main thread, where a worker runs its tasks;
elsewhere nothing is interrupted and the deadline is only told.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Raised again and again: what was caught once must not run on.
_AGAIN_SECONDS = 0.25


class TimeSpent(BaseException):
    """The time of this run is spent. No `Exception`, so that the usual `except` of foreign code lets it pass."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `TimeSpent` inside the block once `seconds` have passed. What was set before is in place again afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _raise)
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), _AGAIN_SECONDS)
    try:
        yield
    finally:
        _restore(previous, left, interval)


def _raise(_number: int, _frame: Any) -> None:
    raise TimeSpent


def _restore(previous: Any, left: float, interval: float) -> None:
    """Take the timer away, also when it goes off during that; only then let `TimeSpent` go on."""
    spent: TimeSpent | None = None
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        except TimeSpent as error:
            spent = error
            continue
        break
    if left:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
    if spent is not None:
        raise spent
