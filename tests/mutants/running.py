"""Runs the tests of a mutant. A process that has imported the modules forks a child for each run, so that runs share no state."""

from __future__ import annotations

import gc
import importlib
import marshal
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import django
import psycopg
import pytest
import redis
from kombu.transport import TRANSPORT_ALIASES

from config.launcher.servers import temporary_servers
from tests.mutants.grafting import Graft, LoadedFunctions, graft_of, noted_calls
from tests.mutants.mutant import Mutant
from tests.mutants.planting import StaleMutant, file_of, mutated, replaced

# The packages whose imports take longest. They need no settings of Django.
_WARM = (
    "schemathesis", "hypothesis", "faker", "factory", "time_machine", "pytest_django", "pytest_asyncio", "xdist", "psycopg", "redis",
    "kombu", "celery", "requests", "urllib3", "asgiref.sync", "cryptography.x509", "jmespath", "lxml.etree", "joserfc.jwt",
    "django.db.models", "django.test", "django.forms", "django.template", "oauthlib.oauth2", "structlog",
)  # fmt: skip
# The product's modules that most tests import. The child imports the other modules.
_PRODUCT = ("config.urls", "config.asgi", "config.celery", "provisioning.engine.delivering", "events.stream.endpoint")
_LINKED = (".venv", ".peers")
# More time than any test may take.
LONGEST_SECONDS = 300.0
# More time than all tests take without a mutant, on a busy machine.
_BASELINE_SECONDS = 7200.0
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
        _make_repository(copy)
        for name in _LINKED:
            if (root / name).exists():
                (copy / name).symlink_to((root / name).resolve())
        yield copy


def _make_repository(copy: Path) -> None:
    """Put the files of the copy into the index of a new repository: some tests read the names of the files from Git."""
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    subprocess.run(["git", "add", "--all", "--force"], cwd=copy, check=True)


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


class Runner:
    """Runs the tests of the copy in child processes. Their parent is this process, or a process that has also imported the product."""

    def __init__(self, copy: Path, project: Connection) -> None:
        self.copy = copy
        self._project = project

    def judge(self, mutant: Mutant) -> Judgement:
        """Plant the mutant in the copy and run its tests."""
        try:
            file = file_of(self.copy, mutant.module)
            changed = mutated(file.read_text(), mutant)
        except StaleMutant as stale:
            return Judgement(Verdict.BROKEN, str(stale), 0.0, "")
        return self.judge_text(file, changed, mutant.tests)

    def judge_text(self, file: Path, changed: str, tests: Sequence[str], *, longest: float = LONGEST_SECONDS) -> Judgement:
        """Replace the text of a file and run the tests.

        The process with the product needs only the changed code. The text is replaced too, because tests start other processes.
        """
        graft = graft_of(file, file.read_text(), changed) if _is_valid(changed) else None
        with replaced(file, changed):
            judgement = None if graft is None else self._asked(tests, graft, longest)
            return judgement or run_tests(self.copy, tests, longest=longest)

    def run(self, tests: Sequence[str]) -> Judgement:
        """Run the tests without a mutant."""
        return self._asked(tests, {}, _BASELINE_SECONDS) or run_tests(self.copy, tests, longest=_BASELINE_SECONDS)

    def _asked(self, tests: Sequence[str], graft: Graft, longest: float) -> Judgement | None:
        """Run the tests in a child of the process with the product. Return None if the change needs a new import."""
        self._project.send((list(tests), {name: marshal.dumps(code) for name, code in graft.items()}, longest))
        answer: tuple[str, str, float, str] | None = self._project.recv()
        return None if answer is None else Judgement(Verdict(answer[0]), *answer[1:])


@contextmanager
def runner(copy: Path, load: Callable[[], object] | None = None) -> Iterator[Runner]:
    """Start the process that imports the product from the copy with `load`. End the process afterwards."""
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_the_project(copy, theirs, load or load_the_product)
    theirs.close()
    try:
        yield Runner(copy, ours)
    finally:
        ours.close()
        os.waitpid(pid, 0)


def _is_valid(text: str) -> bool:
    try:
        compile(text, "text", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def run_tests(copy: Path, tests: Sequence[str], *, longest: float = LONGEST_SECONDS) -> Judgement:
    """Run the tests in a child until the first failure. Without a mutant, the expected verdict is `MISSED`: all tests passed."""
    return _in_a_child(tests, longest, partial(_enter, copy))


def _in_a_child(tests: Sequence[str], longest: float, prepare: Callable[[], None]) -> Judgement:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-run-") as directory:
        output, failed = Path(directory, "output"), Path(directory, "failed")
        output.touch()
        pid = os.fork()
        if pid == 0:
            _be_the_child(tests, output, failed, prepare)
        code = _wait(pid, longest)
        verdict, detail = _verdict_of(code, failed.read_text() if failed.exists() else "", longest)
        return Judgement(verdict, detail, time.monotonic() - begin, output.read_text(errors="replace"))


def _be_the_project(copy: Path, requests: Connection, load: Callable[[], object]) -> NoReturn:
    """Import the product, then run tests in children until the other end of the pipe is closed."""
    code = 0
    try:
        prefix = os.environ["REDIS_PREFIX"] = f"mutants-{os.getpid()}"
        _enter(copy)
        with warnings.catch_warnings(), noted_calls(copy) as called:
            warnings.simplefilter("ignore")
            load()
        functions = LoadedFunctions(copy, called)
        gc.collect()
        gc.freeze()
        with suppress(EOFError):
            while True:
                _answer(requests, functions, prefix)
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


def _answer(requests: Connection, functions: LoadedFunctions, prefix: str) -> None:
    tests, names, longest = requests.recv()
    graft: Graft = {name: marshal.loads(code) for name, code in names.items()}  # noqa: S302  (sent by the parent of this process)
    if not functions.can_take(graft):
        requests.send(None)
        return
    _forget_keys(prefix)
    judgement = _in_a_child(tests, longest, partial(functions.take, graft))
    # Send plain values, because this process has unloaded the modules of the tests and cannot pickle their classes.
    requests.send((judgement.verdict.value, judgement.detail, judgement.seconds, judgement.output))


def load_the_product() -> None:
    """Import the modules that most tests use."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
    django.setup()
    for name in _PRODUCT:
        importlib.import_module(name)


def _forget_keys(prefix: str) -> None:
    """Delete the state of the previous run in Redis, such as the rate of an address."""
    if "REDIS_URL" in os.environ:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as server:
            for key in server.scan_iter(f"{prefix}*", count=1000):
                server.delete(key)


def _verdict_of(code: int | None, failed: str, longest: float) -> tuple[Verdict, str]:
    if code is None:
        return Verdict.BROKEN, f"the tests did not end within {longest:.0f} seconds"
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


def _be_the_child(tests: Sequence[str], output: Path, failed: Path, prepare: Callable[[], None]) -> NoReturn:
    """Run pytest in the copy and end the process without the cleanup of the parent."""
    code = 70
    try:
        os.setpgid(0, 0)
        descriptor = os.open(output, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        prepare()
        code = int(pytest.main([*_OPTIONS, *tests], plugins=[_FirstFailure(failed)]))
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _enter(copy: Path) -> None:
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
            time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if code is None:
        os.waitpid(pid, 0)
    return code
