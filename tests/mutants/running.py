"""Runs the tests of a mutant. A process that has imported the modules forks a child for each run, so that runs share no state."""

from __future__ import annotations

import gc
import importlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psycopg
import pytest

from config.launcher.servers import temporary_servers
from tests.mutants.mutant import Mutant
from tests.mutants.planting import StaleMutant, planted

# The slowest imports of a run, which need no settings.
_WARM = (
    "schemathesis", "hypothesis", "faker", "factory", "time_machine", "pytest_django", "pytest_asyncio", "xdist", "psycopg", "redis",
    "kombu", "celery", "requests", "urllib3", "asgiref.sync", "cryptography.x509", "jmespath", "lxml.etree", "joserfc.jwt",
    "django.db.models", "django.test", "django.forms", "django.template", "oauthlib.oauth2", "structlog",
)  # fmt: skip
_LINKED = (".venv", ".peers")
# More time than any test may take.
_LONGEST_SECONDS = 300.0
_OPTIONS = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


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


@contextmanager
def copied_tree(root: Path) -> Iterator[Path]:
    """Copy the files of the checkout, including changed and new files, to a temporary directory. Remove the directory at the end."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory)
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        for name in _LINKED:
            if (root / name).exists():
                (copy / name).symlink_to((root / name).resolve())
        yield copy


@contextmanager
def servers() -> Iterator[None]:
    """Start the servers that the environment does not name. All runs copy the same database."""
    with ExitStack() as stack:
        os.environ.update(stack.enter_context(temporary_servers()))
        run = os.environ["PYTEST_XDIST_TESTRUNUID"] = secrets.token_hex(16)
        lock = stack.enter_context(psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True))
        # `tests.databases` keeps the database with the schema while a process holds this lock.
        lock.execute("SELECT pg_advisory_lock_shared(1, hashtext(%s))", [f"test_migrated_{run}"])
        yield


def warm_up() -> None:
    """Import the modules that each child needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _WARM:
            importlib.import_module(name)
    # A garbage collection in a child would copy the memory pages of every object.
    gc.collect()
    gc.freeze()


def judge(copy: Path, mutant: Mutant) -> Judgement:
    """Plant the mutant in the copy and run its tests."""
    begin = time.monotonic()
    try:
        with planted(copy, mutant):
            judgement = run_tests(copy, mutant.tests)
    except StaleMutant as stale:
        return Judgement(Verdict.BROKEN, str(stale), time.monotonic() - begin, "")
    return judgement


def run_tests(copy: Path, tests: Sequence[str]) -> Judgement:
    """Run the tests in a child until the first failure. Without a mutant, the expected verdict is `MISSED`: all tests passed."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-run-") as directory:
        output, failed = Path(directory, "output"), Path(directory, "failed")
        output.touch()
        pid = os.fork()
        if pid == 0:
            _be_the_child(copy, tests, output, failed)
        code = _wait(pid)
        verdict, detail = _verdict_of(code, failed.read_text() if failed.exists() else "")
        return Judgement(verdict, detail, time.monotonic() - begin, output.read_text(errors="replace"))


def _verdict_of(code: int | None, failed: str) -> tuple[Verdict, str]:
    if code is None:
        return Verdict.BROKEN, f"the tests did not end within {_LONGEST_SECONDS:.0f} seconds"
    if failed:
        return Verdict.CAUGHT, failed
    if code == pytest.ExitCode.OK:
        return Verdict.MISSED, ""
    return Verdict.BROKEN, f"pytest ended with {code} before any test failed"


class _FirstFailure:
    """A pytest plugin that stores the first test that failed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._file.exists():
            self._file.write_text(report.nodeid)


def _be_the_child(copy: Path, tests: Sequence[str], output: Path, failed: Path) -> None:
    """Run pytest in the copy and end the process without the cleanup of the parent."""
    code = 70
    try:
        os.setpgid(0, 0)
        descriptor = os.open(output, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        os.chdir(copy)
        # Each run has its own prefix in Redis, so that state such as rates is not shared with the next run.
        os.environ["REDIS_PREFIX"] = f"mutant-{os.getpid()}"
        sys.path[:] = [str(copy), *(entry for entry in sys.path if entry and not Path(entry, "tests", "mutants").exists())]
        # The child imports the packages of the tree from the copy.
        for name in [name for name in sys.modules if (copy / name.partition(".")[0]).is_dir()]:
            del sys.modules[name]
        importlib.invalidate_caches()
        code = int(pytest.main([*_OPTIONS, *tests], plugins=[_FirstFailure(failed)]))
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _wait(pid: int) -> int | None:
    """Return the exit code, or None after the time limit. Kill processes that the child left."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    code = None
    while code is None and time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if code is None:
        os.waitpid(pid, 0)
    return code
