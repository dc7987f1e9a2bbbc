"""An environment of its own for tools that the service itself does not need, made from a lock with hashes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path


def install(lock: Path, environment: Path) -> bool:
    """Make the environment as the lock says, unless it is so already; False when pip could not.

    The stamp is written last: an interrupted run starts over.
    """
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = environment / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement", str(lock)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(environment)], pip):
        if subprocess.run(command, check=False).returncode != 0:
            return False
    stamp.write_text(wanted)
    return True
