"""Installs what `make test-peers` needs: npm and Python packages below `.peers/`, Debian packages where the machine allows it.

The lists stand beside the tests: `tests/peers/package.json` with its lock, `tests/peers/requirements.lock` for an
environment of its own, and `tests/peers/packages.txt`, a Debian package and one of its programs per line. What cannot
be installed is named; its tests skip themselves and say so.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys

from config.launcher import tool_environment
from config.launcher.options import ROOT

LISTS = ROOT / "tests" / "peers"
PLACE = ROOT / ".peers"


def main() -> int:
    """Install everything that is listed and missing. Always 0: the tests judge, not the installation."""
    for problem in [*_debian_packages(), *_node_packages(), *_python_packages()]:
        print(f"test-peers: {problem}", file=sys.stderr)
    return 0


def _debian_packages() -> list[str]:
    listed = LISTS / "packages.txt"
    lines = [line.split() for line in listed.read_text().splitlines() if line.strip()] if listed.exists() else []
    missing = [package for package, program in lines if shutil.which(program, path=_search_path()) is None]
    if not missing:
        return []
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return [f"not installed, because only root may: apt-get install {' '.join(missing)}"]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *missing]):
        if subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return [f"apt-get could not install {' '.join(missing)}"]
    return []


def _search_path() -> str:
    # Daemons such as nginx live where ordinary users do not look.
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _node_packages() -> list[str]:
    manifest, lock = LISTS / "package.json", LISTS / "package-lock.json"
    if not manifest.exists():
        return []
    npm = shutil.which("npm")
    if npm is None:
        return ["npm is missing, so no Node client is tested"]
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in (manifest, lock) if path.exists())).hexdigest()
    stamp = PLACE / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return []
    PLACE.mkdir(exist_ok=True)
    for path in (manifest, lock):
        if path.exists():
            shutil.copy(path, PLACE)
    command = [npm, "ci" if lock.exists() else "install", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(command, cwd=PLACE, check=False).returncode != 0:
        return ["npm could not install the packages of tests/peers/package.json"]
    stamp.write_text(wanted)
    return []


def _python_packages() -> list[str]:
    lock, environment = LISTS / "requirements.lock", PLACE / "python"
    if not lock.exists():
        return []
    installed = tool_environment.install(lock, environment)
    return [] if installed else ["pip could not install the packages of tests/peers/requirements.lock"]


if __name__ == "__main__":
    sys.exit(main())
