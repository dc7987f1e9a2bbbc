"""Create `.venv` from a hash-pinned lock: run as `python3.11 config/launcher/bootstrap.py embedded|dev`.

Needs only Python 3.11 and its standard library, because it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
INTERPRETER = ENVIRONMENT / "bin" / "python"
# uv is outside the environment, because uv would otherwise remove itself when it syncs the environment.
TOOLS = ENVIRONMENT / "tools"
STAMP = ENVIRONMENT / "installed"
LOCKS = ROOT / "requirements"
# For each set of packages: the sets that contain all of its packages. If one of these sets is installed, nothing needs to be installed.
SERVED_BY = {"embedded": ("embedded", "dev"), "dev": ("dev",)}


def main(wanted: str) -> None:
    """Install the set `wanted` unless the stamp shows that this set or a larger set is installed.

    1. Create the virtual environment if it is missing or its interpreter no longer runs.
    2. Install uv from `bootstrap.lock`, by hash.
    3. Let uv install the lock, by hash. If uv cannot reach the packages, pip installs them.
    4. Write the stamp, last: an interrupted run starts over.
    """
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"Python 3.11 is needed, this is {sys.version.split()[0]}: install it, or name it with PYTHON=/path/to/python3.11.")
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_installed(wanted):
            _install(wanted)


def _is_installed(wanted: str) -> bool:
    if not STAMP.exists() or not INTERPRETER.exists():
        return False
    stamp = STAMP.read_text()
    return any(stamp == _stamp(name) for name in SERVED_BY[wanted])


def _stamp(name: str) -> str:
    locks = b"".join((LOCKS / file).read_bytes() for file in ("bootstrap.lock", f"{name}.lock"))
    return f"{name} {hashlib.sha256(locks).hexdigest()}\n"


def _install(wanted: str) -> None:
    started = time.monotonic()
    _say(f"Installing requirements/{wanted}.lock into .venv ...")
    STAMP.unlink(missing_ok=True)
    _create_environment()
    lock = str(LOCKS / f"{wanted}.lock")
    if not _install_with_uv(lock):
        _say("uv could not install the packages, pip takes over (slower).")
        _pip("--require-hashes", "-r", lock)
    STAMP.write_text(_stamp(wanted))
    _say(f"Installed in {time.monotonic() - started:.0f} s.")


def _create_environment() -> None:
    if INTERPRETER.exists() and _succeeds([str(INTERPRETER), "-c", "import pip, sys; sys.exit(sys.version_info[:2] != (3, 11))"]):
        return
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    if not _succeeds([sys.executable, "-m", "venv", str(ENVIRONMENT)]):
        sys.exit("python -m venv failed; on Debian the package python3.11-venv is missing.")


def _install_with_uv(lock: str) -> bool:
    uv = TOOLS / "bin" / "uv"
    if not uv.exists() or not _succeeds([str(uv), "--version"]):
        shutil.rmtree(TOOLS, ignore_errors=True)
        _pip("--require-hashes", "--target", str(TOOLS), "-r", str(LOCKS / "bootstrap.lock"))
    command = [str(uv), "pip", "sync", "--quiet", "--require-hashes", "--python", str(INTERPRETER), lock]
    # Without these settings, uv would download an interpreter if it rejects the present interpreter. And uv would trust only its own
    # certificate authorities; pip trusts the authorities of the machine.
    settings = {"UV_SYSTEM_CERTS": "true", **os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    return subprocess.run(command, env=settings, check=False).returncode == 0


def _pip(*arguments: str) -> None:
    command = [str(INTERPRETER), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit("pip could not install the packages; see its message above.")


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SERVED_BY:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(SERVED_BY)}")
    main(sys.argv[1])
