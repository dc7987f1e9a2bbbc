"""Runs pytest in a forked child process, and reads the verdict from the exit code of the child.

The child ends with `os._exit`, so it does not run the cleanup of its parent.
"""

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

# The time limit of a run. It is longer than the time limit of a test in the options below, so that a hanging test fails.
LONGEST_SECONDS = 300.0
_WARNINGS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
# Run pytest without the plugin of faker, which no test uses. The plugin creates a generator of data in every run, which takes longer than
# most tests of pure modules.
_OPTIONS = ("-q", "-x", "-n0", "--timeout=240", "-p", "no:cacheprovider", "-p", "no:faker", *_WARNINGS)


class Verdict(Enum):
    """The result of a run: a test failed, all tests passed, or the run could not be judged."""

    CAUGHT = "caught"
    MISSED = "missed"
    BROKEN = "broken"


@dataclass(frozen=True)
class Judgement:
    """The verdict, the time and the output of pytest. `detail` is the test that detected the mutant, or the reason why the run could not be
    judged."""

    verdict: Verdict
    detail: str
    seconds: float
    output: str


class FirstFailure:
    """A pytest plugin that writes the name of the first failed test into a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def name(self) -> str:
        """The name of the first failed test, or an empty text if no test has failed."""
        return self._file.read_text() if self._file.exists() else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the name of the test, if it is the first that failed."""
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
    """Make this process import the packages of the checkout from `copy`."""
    os.chdir(copy)
    # A run must not find the state of an earlier run in Redis, such as counts for rate limits. If the environment has no prefix, this run
    # gets its own prefix. Otherwise, the process that set the prefix calls `forget_keys` before each run.
    os.environ.setdefault("REDIS_PREFIX", f"mutant-{os.getpid()}")
    sys.path[:] = [str(copy), *(entry for entry in sys.path if entry and not Path(entry, "tests", "mutants").exists())]
    for name in [name for name in sys.modules if _is_of(copy, name)]:
        del sys.modules[name]
    # Remove the transports of the unchanged source from kombu. They were registered when this process started the servers with the
    # launcher.
    for scheme in [scheme for scheme, place in TRANSPORT_ALIASES.items() if _is_of(copy, place.partition(":")[0])]:
        del TRANSPORT_ALIASES[scheme]
    importlib.invalidate_caches()


def forget_keys() -> None:
    """Delete the state of the previous run in Redis, such as the counts of requests of an IP address."""
    if "REDIS_URL" in os.environ:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as server:
            for key in server.scan_iter(f"{os.environ['REDIS_PREFIX']}*", count=1000):
                server.delete(key)


def _is_of(copy: Path, module: str) -> bool:
    return (copy / module.partition(".")[0]).is_dir()


def _wait(pid: int, longest: float) -> int | None:
    """Wait for the child, and return its exit code, or None after the time limit. Kill the child and the processes that it started."""
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
