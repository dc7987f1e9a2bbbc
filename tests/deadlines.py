"""Waiting for something to become true, with a deadline instead of a sleep."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object], *, seconds: float = 10.0, pause: float = 0.02) -> None:
    """Return as soon as `condition()` is true; fail the test when it still is not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {seconds} s")
        time.sleep(pause)
