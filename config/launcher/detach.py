"""`make up DETACH=1`: a supervisor in its own session; the caller returns when every process answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from config.launcher.control import take_lock
from config.launcher.directories import make_private

_READY = "ready"


def start(data_dir: Path) -> int:
    """Start the supervisor, show its messages until it is ready, and return 0; or show the error and return 1.

    The supervisor writes its log to `.data/up.log`. It keeps neither the output nor the error stream of the caller open. So the
    output of `make up DETACH=1` ends as soon as this command has ended, and a program that reads the output does not wait any longer.
    """
    make_private(data_dir)
    reader, writer = os.pipe()
    path = data_dir / "up.log"
    path.touch(mode=0o600)
    lock = take_lock(data_dir)
    if lock is not None:
        # Empty the log of the last run, but never the log of a running supervisor, which holds the lock.
        path.write_bytes(b"")
        lock.close()
    with path.open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "config.launcher", "supervise", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writer],
            start_new_session=True,
        )
    os.close(writer)
    with os.fdopen(reader) as news:
        try:
            return _relay(news, supervisor)
        except KeyboardInterrupt:
            supervisor.terminate()
            supervisor.wait()
            return 130


def _relay(news: TextIO, supervisor: subprocess.Popen[bytes]) -> int:
    for line in news:
        if line.rstrip() == _READY:
            return 0
        print(line, end="", flush=True)
    return supervisor.wait() or 1
