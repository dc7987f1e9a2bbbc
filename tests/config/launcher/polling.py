"""Waits for other processes: checks a condition repeatedly until it is true or a deadline has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Return as soon as `condition` is true. Fail if it is not true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{condition} was not true within {seconds} seconds"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Report whether a process runs. A zombie process counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
