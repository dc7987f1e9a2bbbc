"""A separate environment, created from a lock with hashes, for tools that the service itself does not need."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from config.launcher.options import ROOT

_UV = ROOT / ".venv" / "tools" / "bin" / "uv"


def is_installed(lock: Path, environment: Path) -> bool:
    """Tell whether the environment matches the lock."""
    stamp = environment / "installed"
    return stamp.exists() and stamp.read_text() == _digest(lock)


def install(lock: Path, environment: Path) -> bool:
    """Make the environment match the lock; return False if both uv and pip fail.

    The stamp is written last, so after an interruption the next run installs everything again.
    """
    if is_installed(lock, environment):
        return True
    if not _succeeds([sys.executable, "-m", "venv", "--clear", str(environment)]):
        return False
    if not (_install_with_uv(lock, environment) or _install_with_pip(lock, environment)):
        return False
    (environment / "installed").write_text(_digest(lock))
    return True


def _install_with_uv(lock: Path, environment: Path) -> bool:
    """Install with the uv of `bootstrap.py`, which is five times as fast as pip. Return False if uv is missing or fails."""
    if not _UV.exists():
        return False
    command = [str(_UV), "pip", "install", "--quiet", "--require-hashes", "--python", str(environment / "bin" / "python")]
    # As in `bootstrap.py`: uv downloads no interpreter, and trusts the certificate authorities of the machine.
    settings = {"UV_SYSTEM_CERTS": "true", **os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    return _succeeds([*command, "--requirement", str(lock)], settings)


def _install_with_pip(lock: Path, environment: Path) -> bool:
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return _succeeds([*command, "--require-hashes", "--requirement", str(lock)])


def _succeeds(command: list[str], environment: Mapping[str, str] | None = None) -> bool:
    return subprocess.run(command, env=environment, check=False).returncode == 0


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
