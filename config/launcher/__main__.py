"""The commands behind the Makefile: up, down, reset, scim-stop, scim-start."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from config.launcher import control, detach, options, up
from config.launcher.console import Console
from config.launcher.control import NothingRuns
from config.launcher.directories import strangers

# `make down` waits this long while the service closes open streams and finishes running deliveries.
_STOP_SECONDS = 90.0


def _up() -> int:
    if os.environ.get("DETACH", "") in {"1", "true", "yes", "on"}:
        return detach.start(options.data_directory())
    return up.supervise(Console(), with_parent=True)


def _down() -> int:
    data_dir = options.data_directory()
    if not _is_running(data_dir):
        print("Nothing is running.")
        return 0
    try:
        control.ask(data_dir, "stop")
    except NothingRuns:
        print("make down: make up is starting or stopping; try again in a moment.", file=sys.stderr)
        return 1
    return _wait_for_end(data_dir)


def _wait_for_end(data_dir: Path) -> int:
    deadline = time.monotonic() + _STOP_SECONDS
    while _is_running(data_dir):
        if time.monotonic() > deadline:
            print(f"make down: the service has not stopped within {_STOP_SECONDS:.0f} seconds.", file=sys.stderr)
            return 1
        time.sleep(0.05)
    print("Everything has stopped.")
    return 0


def _reset() -> int:
    """Remove the data directory after confirmation. Never touches outside servers or foreign files."""
    data_dir = options.data_directory()
    if not (data_dir / "lock").exists():
        print(f"There is nothing to reset in {data_dir}.")
        return 0
    if found := strangers(data_dir):
        # DATA_DIR may be a directory that was in use before, so remove only files of this launcher.
        print(
            f"make reset: {data_dir} contains {', '.join(found[:5])}, which make up did not create: nothing was removed.", file=sys.stderr
        )
        return 1
    if os.environ.get("YES", "") != "1" and not _confirms(data_dir):
        print("Nothing was removed.")
        return 1
    if _is_running(data_dir) and _down() != 0:
        return 1
    shutil.rmtree(data_dir)
    print(f"Removed {data_dir}. Servers named by DATABASE_URL and REDIS_URL were not touched.")
    return 0


def _confirms(data_dir: Path) -> bool:
    if not sys.stdin.isatty():
        print("make reset: no terminal for the confirmation; use make reset YES=1.", file=sys.stderr)
        return False
    return input(f"Remove {data_dir} with its database, keys and SCIM resources? [y/N] ").strip().lower() in {"y", "yes"}


def _is_running(data_dir: Path) -> bool:
    if not (data_dir / "lock").exists():
        return False
    lock = control.take_lock(data_dir)
    if lock is None:
        return True
    lock.close()
    return False


def _scim(request: str, done: str, already: str) -> int:
    try:
        answer = control.ask(options.data_directory(), request)
    except NothingRuns:
        print(f"make {request}: nothing is running; make up starts everything.", file=sys.stderr)
        return 1
    print(done if answer.get("done") else already)
    return 0


COMMANDS: dict[str, Callable[[], int]] = {
    "up": _up,
    "down": _down,
    "reset": _reset,
    "scim-stop": lambda: _scim("scim-stop", "The SCIM server has stopped.", "The SCIM server was stopped already."),
    "scim-start": lambda: _scim("scim-start", "The SCIM server answers again.", "The SCIM server is running already."),
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    if len(arguments) == 2 and arguments[0] == "supervise":
        return up.as_detached_child(int(arguments[1]))
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python -m config.launcher {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    return COMMANDS[arguments[0]]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
