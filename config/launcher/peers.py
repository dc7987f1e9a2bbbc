"""Installs the requirements of `make test-peers`: npm and Python packages below `.peers/`, Debian packages where the machine
allows it.

The lists are in the directories of the tests: `tests/peers/package.json` with its lock, `tests/peers/requirements.lock` for a separate
environment, and `tests/peers/packages.txt`, whose lines contain a Debian package and one of its programs or files. Each folder of
`tests/peers/servers` is for one SCIM server, and has its own npm or Python lock, because its packages conflict with our packages and with
those of other servers. Packages that cannot be installed are reported. Tests that need these packages skip themselves with a reason.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from config.launcher import tool_environment
from config.launcher.options import ROOT

LISTS = ROOT / "tests" / "peers"
SERVERS = LISTS / "servers"
PLACE = ROOT / ".peers"
# The programs that build the manual. Tests open its pages in a browser.
MANUAL = ROOT / "requirements" / "docs.lock"


def main() -> int:
    """Install every listed package that is missing. Always returns 0: the tests report the result.

    Two installations run at a time: one downloads while the other unpacks.
    """
    with ThreadPoolExecutor(max_workers=2) as executor:
        for problems in executor.map(_run, _installations()):
            for problem in problems:
                print(f"test-peers: {problem}", file=sys.stderr)
    return 0


def _run(installation: Callable[[], list[str]]) -> list[str]:
    return installation()


def place_of(server: str) -> Path:
    """Return where the packages of a folder of `tests/peers/servers` are installed."""
    return PLACE / "servers" / server


def _installations() -> list[Callable[[], list[str]]]:
    """Return what to install, the slowest first."""
    folders = [folder for folder in sorted(SERVERS.iterdir()) if folder.is_dir()]
    node = [partial(install_node_packages, folder, place_of(folder.name)) for folder in folders if (folder / "package-lock.json").exists()]
    python = [
        partial(install_python_packages, folder / "requirements.lock", place_of(folder.name))
        for folder in folders
        if (folder / "requirements.lock").exists()
    ]
    return [
        *node,
        _debian_packages,
        *python,
        partial(install_node_packages, LISTS, PLACE),
        partial(install_python_packages, LISTS / "requirements.lock", PLACE / "python"),
        partial(install_python_packages, MANUAL, PLACE / "docs"),
    ]


def _debian_packages() -> list[str]:
    listed = LISTS / "packages.txt"
    lines = [line.split() for line in listed.read_text().splitlines() if line.strip()] if listed.exists() else []
    missing = [package for package, program in lines if not _is_there(program)]
    if not missing:
        return []
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return [f"not installed, because this requires root: apt-get install {' '.join(missing)}"]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *missing]):
        if subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return [f"apt-get could not install {' '.join(missing)}"]
    return []


def _is_there(program: str) -> bool:
    # Some packages contain no program, but only files, such as schemas. For them the list names one of the files.
    return Path(program).exists() if program.startswith("/") else shutil.which(program, path=_search_path()) is not None


def _search_path() -> str:
    # Daemons such as nginx are in directories outside the PATH of ordinary users.
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def install_node_packages(listed: Path, place: Path) -> list[str]:
    """Install the packages of the lock in `listed` into `place`, unless they are installed; return what failed."""
    manifest, lock = listed / "package.json", listed / "package-lock.json"
    npm = shutil.which("npm")
    if npm is None:
        return [f"npm is missing: nothing of {_name(manifest)} is tested"]
    wanted = hashlib.sha256(manifest.read_bytes() + lock.read_bytes()).hexdigest()
    stamp = place / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return []
    place.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for path in (manifest, lock):
        shutil.copy(path, place)
    # Run no install scripts, because the lock does not cover what they fetch or build.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    started = time.monotonic()
    if subprocess.run(command, cwd=place, check=False).returncode != 0:
        return [f"npm could not install the packages of {_name(lock)}"]
    stamp.write_text(wanted)
    return _installed(lock, started)


def install_python_packages(lock: Path, place: Path) -> list[str]:
    """Install the packages of the lock into an environment at `place`; return what failed."""
    if tool_environment.is_installed(lock, place):
        return []
    started = time.monotonic()
    if not tool_environment.install(lock, place):
        return [f"pip could not install the packages of {_name(lock)}"]
    return _installed(lock, started)


def _installed(listed: Path, started: float) -> list[str]:
    print(f"test-peers: installed the packages of {_name(listed)} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return []


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


if __name__ == "__main__":
    sys.exit(main())
