"""Starts the worker under test, and reads its processor time and memory from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def working(processes: int) -> Iterator[int]:
    """Run a worker with this many processes, and yield the id of the parent process.

    The output of the worker goes to /dev/null: this costs about as much as a log file.
    Task processes are never replaced, because the memory and processor time of a new process start at zero.
    """
    command: list[Any] = [sys.executable, "-m", "celery", "-A", "config", "worker", "--concurrency", str(processes)]
    command += ["--max-tasks-per-child", "1000000"]
    with Path(os.devnull).open("wb") as nowhere:
        worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle"], stdout=nowhere, stderr=nowhere)
        try:
            yield worker.pid
        finally:
            worker.terminate()
            worker.wait(60)


def processor_seconds(worker: int) -> float:
    """Return the processor time of the parent and the task processes, including kernel time and all threads."""
    return sum(_processor_seconds(pid) for pid in (worker, *_children(worker)))


def resident_kib(worker: int) -> float:
    """Return the memory of the process that runs the tasks."""
    status = Path(f"/proc/{_children(worker)[0]}/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def _children(worker: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{worker}/task/{worker}/children").read_text().split()]


def _processor_seconds(pid: int) -> float:
    # Split after the process name, which may contain blanks. User and system time are fields 12 and 13 of the rest.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
