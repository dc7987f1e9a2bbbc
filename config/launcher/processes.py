"""A program of the process group: its command, its readiness check, and how it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from config.launcher import spawn


class NotReady(Exception):
    """A program did not become ready."""


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Program:
    """A program to run. The launcher stops its process with `stop_signal`. The process also receives this signal if the launcher ends
    first."""

    name: str
    command: tuple[str, ...]
    is_ready: Callable[[], bool] = _always
    environment: Mapping[str, str] | None = None
    identity: spawn.Identity = spawn.OURSELVES
    stop_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 15.0
    ready_seconds: float = 60.0


@dataclass
class Process:
    """A started process, running or ended."""

    program: Program
    popen: subprocess.Popen[bytes]
    started_at: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, program: Program, *, output: IO[bytes] | int) -> Process:
        """Start `program`; from the main thread only (see `spawn.start`)."""
        child = spawn.start(
            program.command,
            identity=program.identity,
            death_signal=program.stop_signal,
            environment=program.environment,
            output=output,
        )
        return cls(program, child)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def has_ended(self) -> bool:
        """Tell whether the process has ended. If so, kill the rest of its group, so that no process of the group keeps a port open."""
        if self.popen.poll() is None:
            return False
        self._signal_group(signal.SIGKILL)
        return True

    def ask_to_stop(self) -> None:
        """Send the stop signal only to the process itself, which stops its own children."""
        if self.popen.poll() is None:
            self.popen.send_signal(self.program.stop_signal)

    def kill(self) -> None:
        """Kill the process and everything in its group at once."""
        self._signal_group(signal.SIGKILL)
        self.popen.wait()

    def stop(self) -> None:
        """Stop the process, and kill it when its grace period is over."""
        self.ask_to_stop()
        try:
            self.popen.wait(self.program.grace_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            # The group is already empty.
            return


def wait_until_ready(process: Process, *, log: Path, pause: float = 0.02) -> None:
    """Wait until `process` is ready. Raises `NotReady` with the end of the log if the process ends or takes too long."""
    deadline = time.monotonic() + process.program.ready_seconds
    while not process.program.is_ready():
        if process.has_ended():
            raise NotReady(f"{process.program.name} ended while it started: {last_words(log)}")
        if time.monotonic() > deadline:
            raise NotReady(f"{process.program.name} did not answer within {process.program.ready_seconds:.0f} seconds: {last_words(log)}")
        time.sleep(pause)


def last_words(log: Path) -> str:
    """Return the last lines of a log on one line."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return " | ".join(line.strip() for line in lines[-3:]) or "it printed nothing"


def is_running(pid: int, *, mentions: str) -> bool:
    """Tell whether the process `pid` runs and its command line contains `mentions`, so that a reused pid does not count."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status != "Z" and mentions in command
