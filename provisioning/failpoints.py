"""Named places where a test may kill the process, to prove that every step heals. Inert unless `FAILPOINTS_DIR` is set."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from django.conf import settings

_directory: str = getattr(settings, "FAILPOINTS_DIR", "")


def reach(name: str) -> None:
    """Die by SIGKILL when the file `name` lies in the directory; the file is taken away, so it happens once."""
    if not _directory:
        return
    try:
        (Path(_directory) / name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
