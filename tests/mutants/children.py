"""Runs pytest in a forked child process, which ends without the cleanup of its parent, and reads the verdict from the child's exit code."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn

import pytest
import redis
from kombu.transport import TRANSPORT_ALIASES

# More time than any test may take.
LONGEST_SECONDS = 300.0
# The plugin of faker creates a generator in every run. This takes longer than most tests of pure modules, and no test uses the plugin.
_OPTIONS = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "-p", "no:faker", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Verdict(Enum):
    """The result of a run."""

    CAUGHT = "caught"
    MISSED = "missed"
    BROKEN = "broken"


@dataclass(frozen=True)
class Judgement:
    """The verdict, the test that detected the mutant or the reason why the mutant is broken, the time, and the output of pytest."""

    verdict: Verdict
    detail: str
    seconds: float
    output: str


class FirstFailure:
    """A pytest plugin that stores the name of the first test that failed in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def name(self) -> str:
        """The name of the test, or an empty text."""
        return self._file.read_text() if self._file.exists() else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the first failure."""
        if report.failed and not self._file.exists():
            self._file.write_text(report.nodeid)


def in_a_child(work: Callable[[FirstFailure], int], longest: float) -> Judgement:
    """Call `work` in a child process, and judge the exit code of pytest that `work` returns. Kill the child after `longest` seconds."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-run-") as directory:
        output, failure = Path(directory, "output"), FirstFailure(Path(directory, "failed"))
        output.touch()
        pid = os.fork()
        if pid == 0:
            _be_the_child(work, output, failure)
        code = _wait(pid, longest)
        verdict, detail = _verdict_of(code, failure.name, longest)
        return Judgement(verdict, detail, time.monotonic() - begin, output.read_text(errors="replace"))


def run_pytest(tests: Sequence[str], *plugins: object) -> int:
    """Run the tests in this process until the first failure, and return the exit code."""
    return int(pytest.main([*_OPTIONS, *tests], plugins=list(plugins)))


def _verdict_of(code: int | None, failed: str, longest: float) -> tuple[Verdict, str]:
    if code is None:
        return Verdict.BROKEN, f"the tests did not end within {longest:.0f} seconds"
    if failed:
        return Verdict.CAUGHT, failed
    if code == pytest.ExitCode.OK:
        return Verdict.MISSED, ""
    return Verdict.BROKEN, f"pytest ended with {code} before any test failed"


def _be_the_child(work: Callable[[FirstFailure], int], output: Path, failure: FirstFailure) -> NoReturn:
    code = 70
    try:
        os.setpgid(0, 0)
        descriptor = os.open(output, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        code = work(failure)
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def enter(copy: Path) -> None:
    """Make this process import the packages of the tree from the copy."""
    os.chdir(copy)
    # Each run has its own prefix in Redis, so that state such as rates is not shared with the next run.
    os.environ.setdefault("REDIS_PREFIX", f"mutant-{os.getpid()}")
    sys.path[:] = [str(copy), *(entry for entry in sys.path if entry and not Path(entry, "tests", "mutants").exists())]
    for name in [name for name in sys.modules if _is_of(copy, name)]:
        del sys.modules[name]
    # The launcher, which starts the servers, has registered the transports of the unchanged source with kombu.
    for scheme in [scheme for scheme, place in TRANSPORT_ALIASES.items() if _is_of(copy, place.partition(":")[0])]:
        del TRANSPORT_ALIASES[scheme]
    importlib.invalidate_caches()


def forget_keys() -> None:
    """Delete the state of the previous run in Redis, such as the rate of an IP address."""
    if "REDIS_URL" in os.environ:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as server:
            for key in server.scan_iter(f"{os.environ['REDIS_PREFIX']}*", count=1000):
                server.delete(key)


def _is_of(copy: Path, module: str) -> bool:
    return (copy / module.partition(".")[0]).is_dir()


def _wait(pid: int, longest: float) -> int | None:
    """Return the exit code, or None after the time limit. Kill processes that the child left."""
    deadline = time.monotonic() + longest
    code = None
    while code is None and time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if code is None:
        os.waitpid(pid, 0)
    return code
