"""Waits for a condition with a deadline instead of a sleep. For tests with a speed limit, measures the time without the pauses that a busy
machine causes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TICK_SECONDS = 0.01


def eventually(condition: Callable[[], object], *, seconds: float = 10.0, pause: float = 0.02) -> None:
    """Return as soon as `condition()` is true. Fail the test if it is not true after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {seconds} s")
        time.sleep(pause)


class OwnTime:
    """The seconds in which this process could run. The time in which this process waited for other processes of the machine does not
    count."""

    def __init__(self) -> None:
        self._ticks = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    @property
    def seconds(self) -> float:
        return self._ticks * _TICK_SECONDS

    def _count(self) -> None:
        while not self._is_over.wait(_TICK_SECONDS):
            self._ticks += 1


@contextmanager
def own_time() -> Iterator[OwnTime]:
    """Measure how long this process could run during the block. Sleeps of the process count as well. Read the result during or after the
    block."""
    clock = OwnTime()
    clock._thread.start()
    try:
        yield clock
    finally:
        clock._is_over.set()
        clock._thread.join()
