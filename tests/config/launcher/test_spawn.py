"""Child processes in a user namespace. Each test starts them from a separate process, because no process can remove its fork hooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# The exporter of traces registers a fork hook like this one, which starts a thread in each forked child.
THREAD_IN_EACH_CHILD = """
import os, threading
os.register_at_fork(after_in_child=lambda: threading.Thread(target=threading.Event().wait, daemon=True).start())
"""
REPORT = """
from config.launcher import spawn
inside = spawn.server_identity()
print(inside, *spawn.run(["id", "-u"], identity=inside))
"""
ABSENT = """
from config.launcher import spawn
print(*spawn.run(["/absent/program"], identity=spawn.Identity(namespace=True)))
"""


def printed_by(script: str) -> str:
    """Return what a process with this script prints."""
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_fork_hook_that_starts_threads_does_not_change_the_identity_of_servers() -> None:
    without_hook = printed_by(REPORT)
    assert " 0 " in without_hook
    assert printed_by(THREAD_IN_EACH_CHILD + REPORT) == without_hook


def test_a_program_that_cannot_be_executed_in_a_namespace_is_reported() -> None:
    status, _, message = printed_by(ABSENT).partition(" ")
    assert status != "0"
    assert message.strip()
