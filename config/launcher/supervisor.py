"""Keeps a group of processes running: starts them, shows their output, restarts processes that have ended, and stops all in order.

Single-threaded, because the parent-death signal is bound to the thread that forks. No other thread can serve the processes during a wait,
so every function that waits runs the loop itself.
"""

from __future__ import annotations

import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from config.launcher.console import Console
from config.launcher.output import Output
from config.launcher.processes import NotReady, Process, Program

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
# Seconds between readiness checks of a starting process.
_LOOK_SECONDS = 0.03
# A process that ran for at least this many seconds is restarted after the shortest pause.
_HEALTHY_SECONDS = 30.0


class Stopped(Exception):
    """An end was requested during a wait."""


@dataclass
class _Member:
    """A process to keep running. `prepare` is called before each start, and returns the program to start."""

    prepare: Callable[[], Program]
    process: Process | None = None
    is_wanted: bool = True
    pause: float = _FIRST_PAUSE
    start_at: float = 0.0


class Supervisor:
    """The process group of one `make up`."""

    def __init__(self, console: Console, on_change: Callable[[], None]) -> None:
        """`on_change` is called whenever a process may have started or ended. Often nothing has changed since the previous call."""
        self._console = console
        self._on_change = on_change
        self._selector = selectors.DefaultSelector()
        self._members: dict[str, _Member] = {}
        self._outputs: dict[int, Output] = {}
        self._stop_requests = 0
        self._listen_for_signals()

    @property
    def is_asked_to_stop(self) -> bool:
        return self._stop_requests > 0

    def ask_to_stop(self) -> None:
        """Make the loop end; a second request kills processes that are slow to stop."""
        self._stop_requests += 1

    def watch(self, source: socket.socket, serve: Callable[[], None]) -> None:
        """Call `serve` whenever `source` is readable."""
        self._selector.register(source, selectors.EVENT_READ, serve)

    def start(self, name: str, prepare: Callable[[], Program]) -> None:
        """Start a process and keep it running. If `prepare` raises an exception, no process is started."""
        member = _Member(prepare)
        member.process = self._launch(prepare())
        self._members[name] = member

    def wait_until_ready(self, *names: str) -> None:
        """Wait until the named processes are ready. Raises `NotReady` with their last output, and `Stopped` if an end is requested."""
        for name in names:
            process = self._members[name].process
            if process is not None:
                self._wait_for(process)

    def run_once(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Run a command to its end while the group runs; return its output. Raises `NotReady` when it fails."""
        process = self._launch(Program(name, tuple(command), environment=environment), is_quiet=True)
        while process.popen.poll() is None:
            self._raise_if_stopped(process)
            self.turn(0.05)
        output = self._close_output(process)
        if process.popen.returncode != 0:
            for line in output.lines:
                self._console.show(name, line)
            raise NotReady(f"{name} failed: {output.last_words()}")
        return list(output.lines)

    def run(self) -> None:
        """Run the loop until an end is requested."""
        while not self.is_asked_to_stop:
            self.turn(0.5)
            self._on_change()

    def pause(self, name: str) -> bool:
        """Stop one process on request; the process then stays stopped. Return False if it was already stopped."""
        member = self._members[name]
        if not member.is_wanted:
            return False
        member.is_wanted = False
        if member.process:
            self._stop([member.process])
            member.process = None
        self._on_change()
        return True

    def resume(self, name: str) -> bool:
        """Restart a process that was stopped on request. Return False if it is running."""
        member = self._members[name]
        if member.is_wanted:
            return False
        member.is_wanted, member.pause = True, _FIRST_PAUSE
        member.process = self._launch(member.prepare())
        self._wait_for(member.process)
        self._on_change()
        return True

    def stop_all(self, *phases: Sequence[str]) -> None:
        """Stop the processes phase by phase; a process that others need is stopped in a later phase."""
        for phase in phases:
            members = [self._members[name] for name in phase if name in self._members]
            for member in members:
                member.is_wanted = False
            self._stop([member.process for member in members if member.process])

    def pids(self, name: str) -> list[int]:
        """Return the process itself and all of its living descendants."""
        member = self._members.get(name)
        if member is None or member.process is None or member.process.popen.poll() is not None:
            return []
        return [member.process.pid, *_descendants(member.process.pid)]

    def turn(self, seconds: float) -> None:
        """Run one round of the loop: show output, answer the control socket, restart processes that have ended."""
        for key, _ in self._selector.select(seconds):
            key.data()
        self._restart_what_ended()

    def _launch(self, program: Program, *, is_quiet: bool = False) -> Process:
        process = Process.start(program, output=subprocess.PIPE)
        pipe = process.popen.stdout
        if pipe is not None:
            output = Output(pipe, (lambda line: None) if is_quiet else partial(self._console.show, program.name))
            self._outputs[process.pid] = output
            self._selector.register(pipe, selectors.EVENT_READ, lambda: self._read(output))
        return process

    def _read(self, output: Output) -> None:
        if not output.read():
            self._selector.unregister(output.pipe)
            output.close()

    def _close_output(self, process: Process) -> Output:
        output = self._outputs.pop(process.pid)
        if not output.pipe.closed:
            self._selector.unregister(output.pipe)
            output.close()
        return output

    def _restart_what_ended(self) -> None:
        now = time.monotonic()
        for name, member in self._members.items():
            if member.process and member.process.has_ended():
                self._note_end(name, member, now)
            if member.is_wanted and member.process is None and now >= member.start_at and not self.is_asked_to_stop:
                self._start_again(name, member, now)

    def _note_end(self, name: str, member: _Member, now: float) -> None:
        process = member.process
        if process is None:
            return
        self._close_output(process)
        if now - process.started_at > _HEALTHY_SECONDS:
            member.pause = _FIRST_PAUSE
        member.process, member.start_at = None, now + member.pause
        if member.is_wanted and not self.is_asked_to_stop:
            self._console.say(f"{name} ended ({_ending(process.popen.returncode)}); it starts again in {member.pause:g} s.")
        member.pause = min(member.pause * 2, _LONGEST_PAUSE)

    def _start_again(self, name: str, member: _Member, now: float) -> None:
        try:
            member.process = self._launch(member.prepare())
        except Exception as error:  # noqa: BLE001  (the next try may succeed)
            member.start_at = now + member.pause
            self._console.say(f"{name} could not be started again: {error}")
            return
        self._console.say(f"{name} started again (process {member.process.pid}).")
        self._on_change()

    def _wait_for(self, process: Process) -> None:
        name, deadline = process.program.name, time.monotonic() + process.program.ready_seconds
        output, next_look = self._outputs[process.pid], 0.0
        while True:
            self._raise_if_stopped(None)
            if process.popen.poll() is not None:
                raise NotReady(f"{name} ended while it started ({_ending(process.popen.returncode)}): {output.last_words()}")
            now = time.monotonic()
            if now >= next_look:
                if process.program.is_ready():
                    return
                next_look = now + _LOOK_SECONDS
            if now > deadline:
                raise NotReady(f"{name} did not answer within {process.program.ready_seconds:.0f} seconds: {output.last_words()}")
            self.turn(_LOOK_SECONDS)

    def _stop(self, processes: Sequence[Process]) -> None:
        for process in processes:
            process.ask_to_stop()
        deadline = time.monotonic() + max((process.program.grace_seconds for process in processes), default=0.0)
        while any(process.popen.poll() is None for process in processes):
            if time.monotonic() > deadline or self._stop_requests > 1:
                break
            for key, _ in self._selector.select(0.05):
                key.data()
        for process in processes:
            process.kill()
            self._close_output(process)

    def _raise_if_stopped(self, process: Process | None) -> None:
        if self.is_asked_to_stop:
            if process:
                process.kill()
                self._close_output(process)
            raise Stopped

    def _listen_for_signals(self) -> None:
        reader, writer = socket.socketpair()
        for end in (reader, writer):
            end.settimeout(0)
        # Every signal wakes the loop at once, including SIGCHLD, so the supervisor notices the end of a process immediately.
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        self._wakeup = (reader, writer)
        self._selector.register(reader, selectors.EVENT_READ, lambda: reader.recv(4096))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.ask_to_stop())
        signal.signal(signal.SIGCHLD, lambda *_: None)


def _ending(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"signal {-returncode}"
    return f"exit status {returncode}"


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123  (a kernel file, read as a whole)
            children = [int(child) for child in file.read().split()]
    except OSError:
        return found
    for child in children:
        found += [child, *_descendants(child)]
    return found
