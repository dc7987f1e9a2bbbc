"""The supervisor with real processes. The supervisor runs in a separate process, so that a test can kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.launcher.polling import lives, until

ROOT = Path(__file__).resolve().parents[3]
# The supervisor has two members (its processes), which print their pid. The second member ignores SIGTERM.
SCRIPT = """
import sys
from pathlib import Path
from config.launcher.console import Console
from config.launcher.processes import Program
from config.launcher.supervisor import Supervisor

place = Path(sys.argv[1])
def member(name, code):
    start = f"import os, signal, time; open({str(place)!r} + '/{name}', 'a').write(str(os.getpid()) + chr(10)); {code}; time.sleep(600)"
    stopped = lambda *_: None
    return Program(name, (sys.executable, "-c", start), grace_seconds=1.0)

console = Console()
console.release(with_held_lines=True)
supervisor = Supervisor(console, on_change=lambda: None)
supervisor.start("first", lambda: member("first", "print('half', end='', flush=True); time.sleep(.2); print(' a line', flush=True)"))
supervisor.start("second", lambda: member("second", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
done = {"paused": False}
def look():
    if (place / "pause").exists() and not done["paused"]:
        done["paused"] = supervisor.pause("first")
        (place / "paused").touch()
while not supervisor.is_asked_to_stop:
    supervisor.turn(0.05)
    look()
supervisor.stop_all(("second",), ("first",))
print("stopped", flush=True)
"""


class Running:
    """A supervisor process and the pids that its members printed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.log = place / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(place)], cwd=ROOT, stdout=log, stderr=log)
        until(lambda: len(self.pids("first")) == 1 and len(self.pids("second")) == 1)

    def pids(self, name: str) -> list[int]:
        path = self.place / name
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    started = Running(tmp_path)
    yield started
    started.process.kill()
    started.process.wait()


def test_a_killed_process_is_reported_and_restarted(running: Running) -> None:
    os.kill(running.pids("first")[0], signal.SIGKILL)

    until(lambda: len(running.pids("first")) == 2)
    assert "first ended (signal 9); it starts again in 0.5 s." in running.log.read_text()
    assert lives(running.pids("first")[1])


def test_lines_are_printed_whole_with_the_name_of_their_process(running: Running) -> None:
    until(lambda: "first   | half a line\n" in running.log.read_text())


def test_a_process_stopped_on_request_stays_stopped(running: Running) -> None:
    (running.place / "pause").touch()
    until((running.place / "paused").exists)

    assert not lives(running.pids("first")[0])
    os.kill(running.pids("second")[0], signal.SIGKILL)
    until(lambda: len(running.pids("second")) == 2)
    assert len(running.pids("first")) == 1


def test_the_supervisor_stops_all_processes_even_if_they_ignore_sigterm(running: Running) -> None:
    running.process.terminate()

    assert running.process.wait(20) == 0
    assert running.log.read_text().endswith("stopped\n")
    assert not lives(running.pids("first")[0])
    assert not lives(running.pids("second")[0])


def test_killing_the_supervisor_ends_its_processes(running: Running) -> None:
    running.process.kill()
    running.process.wait()

    until(lambda: not lives(running.pids("first")[0]))
    # The second member ignores the SIGTERM that it got when the supervisor ended, so the test kills it. Our services do not ignore SIGTERM.
    os.kill(running.pids("second")[0], signal.SIGKILL)
