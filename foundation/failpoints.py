"""Named points at which a test kills the process, to prove that every step recovers. No effect unless `FAILPOINTS_DIR` is set."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from django.conf import settings

_directory: str = getattr(settings, "FAILPOINTS_DIR", "")


def reach(name: str) -> None:
    """Kill this process with SIGKILL if `FAILPOINTS_DIR` contains a file `name`. Removes the file first, so only one process is killed."""
    if not _directory:
        return
    try:
        (Path(_directory) / name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
