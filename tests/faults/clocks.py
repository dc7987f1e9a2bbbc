"""Processes whose wall clock is wrong. The clock for durations (`time.monotonic`) stays right."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "wrong_clock"


def clock(hours: int) -> dict[str, str]:
    """Return the environment variables of a Python process whose clock is this many hours ahead.

    libfaketime cannot be used: its version 0.9.10 refuses or delays every `time.sleep` of Python 3.11.
    """
    path = os.pathsep.join(filter(None, [str(_FOLDER), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, "CLOCK_HOURS": str(hours)}
