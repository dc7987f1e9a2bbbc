"""Runs `make up`: checks the preconditions, starts the processes, waits for the end, and stops them. A failed start leaves no process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

import psycopg
from django.core.exceptions import ImproperlyConfigured

from config.launcher import control, options, preflight
from config.launcher.console import Console
from config.launcher.directories import NotPrivate
from config.launcher.group import Group
from config.launcher.options import Options
from config.launcher.processes import NotReady
from config.launcher.programs import MissingProgram
from config.launcher.supervisor import Stopped

_PR_SET_PDEATHSIG = 1
# Expected errors with a message for the user; any other error is a bug and shows its traceback.
_REASONS = (preflight.CannotStart, MissingProgram, NotReady, NotPrivate, ImproperlyConfigured, psycopg.Error, OSError)


def supervise(console: Console, *, with_parent: bool) -> int:
    """Run `make up` in this process and return its exit status. With `with_parent`, the process ends when make is killed."""
    if with_parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    try:
        chosen = options.read()
        lock = control.take_lock(chosen.data_dir)
        if lock is None:
            raise preflight.CannotStart(f"The service is already running{_where(chosen)}: make down stops it.")
        with lock:
            preflight.check(chosen)
            return _run(Group(chosen, console), console)
    except _REASONS as error:
        console.say(f"make up: {_sentence(error)}")
        return 1


def _run(group: Group, console: Console) -> int:
    try:
        group.bring_up()
        if console.herald:
            print("ready", file=console.herald, flush=True)
            console.herald.close()
            console.herald = None
        group.stay_up()
    except Stopped:
        console.say("Stopping before everything was started ...")
        return 1
    except _REASONS as error:
        console.release(with_held_lines=True)
        console.say(f"make up: {_sentence(error)}")
        return 1
    else:
        console.say("Stopping ...")
        return 0
    finally:
        group.bring_down()
        console.say("Everything has stopped.")


def _where(chosen: Options) -> str:
    try:
        return f" at {json.loads((chosen.data_dir / 'up.json').read_text())['auth_url']}"
    except (OSError, ValueError, KeyError):
        return ""


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def as_detached_child(descriptor: int) -> int:
    """Run the supervisor of a detached start. `descriptor` is the pipe to the `make up` that waits for the report."""
    with os.fdopen(descriptor, "w") as herald:
        return supervise(Console(sys.stdout, herald), with_parent=False)
