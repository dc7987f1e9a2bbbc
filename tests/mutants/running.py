"""Runs the tests that should notice a mutant.

A process that has imported the modules forks a child for each run. So a run does not import the modules again, and runs share no state.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import secrets
import shutil
import subprocess
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import django
import psycopg
from psycopg import sql

from config.launcher.servers import temporary_servers
from tests.mutants.children import (
    LONGEST_SECONDS,
    FirstFailure,
    Judgement,
    Verdict,
    enter,
    forget_keys,
    in_a_child,
    run_pytest,
)
from tests.mutants.grafting import Graft, LoadedFunctions, graft_of, noted_calls
from tests.mutants.mutant import Mutant
from tests.mutants.planting import StaleMutant, file_of, mutated, replaced

# The packages that take longest to import. They can be imported before Django is set up.
_WARM = (
    "schemathesis", "hypothesis", "faker", "factory", "time_machine", "pytest_django", "pytest_asyncio", "xdist", "psycopg", "redis",
    "kombu", "celery", "requests", "urllib3", "asgiref.sync", "cryptography.x509", "jmespath", "lxml.etree", "joserfc.jwt",
    "django.db.models", "django.test", "django.forms", "django.template", "oauthlib.oauth2", "structlog",
)  # fmt: skip
# The modules of the product that most tests import. A child imports other modules when its tests need them.
_PRODUCT = ("config.urls", "config.asgi", "config.celery", "provisioning.engine.delivering", "events.stream.endpoint")
# The environment variable that names a database that several runs share. `tests.databases` reads it.
_KEPT = "TEST_KEPT_DATABASE"
_LINKED = (".venv", ".peers")
# The time limit of the run without a mutant. It is longer than all tests take on a busy machine.
_BASELINE_SECONDS = 7200.0


@contextmanager
def copied_tree(root: Path) -> Iterator[Path]:
    """Copy the files of the checkout to a temporary directory, and yield the directory. Remove the directory at the end.

    Changed and new files are copied, too.
    """
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
    """Add the files of the copy to the index of a new Git repository, because some tests read the names of the files from Git."""
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    subprocess.run(["git", "add", "--all", "--force"], cwd=copy, check=True)


@contextmanager
def servers() -> Iterator[None]:
    """Start the servers that the environment does not name. The first run creates a migrated database, and every run copies it."""
    with ExitStack() as stack:
        os.environ.update(stack.enter_context(temporary_servers()))
        run = os.environ["PYTEST_XDIST_TESTRUNUID"] = secrets.token_hex(16)
        lock = stack.enter_context(psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True))
        # While this process has the lock, `tests.databases` does not delete the migrated database at the end of a run.
        lock.execute("SELECT pg_advisory_lock_shared(1, hashtext(%s))", [f"test_migrated_{run}"])
        yield


def warm_up() -> None:
    """Import the packages that each child needs, so that the children need not import them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _WARM:
            importlib.import_module(name)
    # Exclude these objects from garbage collections, which would copy the memory pages of the objects in each child.
    gc.collect()
    gc.freeze()


class Runner:
    """Runs the tests of the copy in child processes.

    The parent of a child is a process that has imported the product, or this process if the child must import a changed module.
    """

    def __init__(self, copy: Path, project: Connection) -> None:
        self.copy = copy
        self._project = project
        self._kept: str | None = None

    def keep_database(self, keeps: bool) -> None:
        """If `keeps` is true, let the next runs share one new database. Otherwise, give each run its own database.

        Set or remove the environment variable for processes that this process starts, and drop the shared database of the earlier runs.
        """
        os.environ.pop(_KEPT, None)
        if self._kept:
            with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
                server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(self._kept)))
        self._kept = f"test_kept_{secrets.token_hex(8)}" if keeps else None
        if self._kept:
            os.environ[_KEPT] = self._kept

    def judge(self, mutant: Mutant) -> Judgement:
        """Plant the mutant in the copy, run its tests, and return the judgement. A stale mutant is judged as broken."""
        try:
            file = file_of(self.copy, mutant.module)
            changed = mutated(file.read_text(), mutant)
        except StaleMutant as stale:
            return Judgement(Verdict.BROKEN, str(stale), 0.0, "")
        return self.judge_text(file, changed, mutant.tests)

    def judge_text(self, file: Path, changed: str, tests: Sequence[str], *, longest: float = LONGEST_SECONDS) -> Judgement:
        """Replace the text of a file and run the tests.

        The process that has imported the product gets only the changed functions. The file is also replaced, for processes that tests
        start.
        """
        graft = graft_of(file, file.read_text(), changed)
        with replaced(file, changed):
            judgement = None if graft is None else self._asked(tests, graft, longest)
            return judgement or run_tests(self.copy, tests, longest=longest)

    def run(self, tests: Sequence[str]) -> Judgement:
        """Run the tests without a mutant. The verdict `MISSED` means that all tests passed."""
        return self._asked(tests, {}, _BASELINE_SECONDS) or run_tests(self.copy, tests, longest=_BASELINE_SECONDS)

    def _asked(self, tests: Sequence[str], graft: Graft, longest: float) -> Judgement | None:
        """Run the tests in a child of the process that has imported the product. Return None if the changed code requires a new import."""
        self._project.send((list(tests), {name: marshal.dumps(code) for name, code in graft.items()}, longest, self._kept))
        answer: tuple[str, str, float, str] | None = self._project.recv()
        return None if answer is None else Judgement(Verdict(answer[0]), *answer[1:])


@contextmanager
def runner(copy: Path, load: Callable[[], object] | None = None) -> Iterator[Runner]:
    """Start the process that imports the product from the copy with `load`. End the process afterwards.

    Raises `EOFError` if the product cannot be imported.
    """
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_the_project(copy, theirs, load or load_the_product)
    theirs.close()
    try:
        # Wait until the process has imported the product. A mutant that was planted in the copy earlier would be imported, too.
        ours.recv()
        running = Runner(copy, ours)
        yield running
        running.keep_database(False)
    finally:
        ours.close()
        os.waitpid(pid, 0)


def run_tests(copy: Path, tests: Sequence[str], *, longest: float = LONGEST_SECONDS) -> Judgement:
    """Run the tests in a child that imports the product itself, until the first failure. If all tests pass, the verdict is `MISSED`."""

    def work(failure: FirstFailure) -> int:
        enter(copy)
        return run_pytest(tests, failure)

    return in_a_child(work, longest)


def _be_the_project(copy: Path, requests: Connection, load: Callable[[], object]) -> NoReturn:
    """Import the product, then run the requested tests in children until the other end of the pipe is closed."""
    code = 0
    try:
        os.environ["REDIS_PREFIX"] = f"mutants-{os.getpid()}"
        enter(copy)
        with warnings.catch_warnings(), noted_calls(copy) as called:
            warnings.simplefilter("ignore")
            load()
        functions = LoadedFunctions(copy, called)
        gc.collect()
        gc.freeze()
        requests.send("loaded")
        with suppress(EOFError):
            while True:
                _answer(requests, functions)
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


def _answer(requests: Connection, functions: LoadedFunctions) -> None:
    tests, names, longest, kept = requests.recv()
    graft: Graft = {name: marshal.loads(code) for name, code in names.items()}  # noqa: S302  (sent by the parent of this process)
    if not functions.can_take(graft):
        requests.send(None)
        return
    forget_keys()

    def work(failure: FirstFailure) -> int:
        functions.take(graft)
        os.environ.update({_KEPT: kept} if kept else {})
        return run_pytest(tests, failure)

    judgement = in_a_child(work, longest)
    # Send plain values, because this process has unloaded the modules of the tests and cannot pickle their classes.
    requests.send((judgement.verdict.value, judgement.detail, judgement.seconds, judgement.output))


def load_the_product() -> None:
    """Import the modules that most tests use."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
    django.setup()
    for name in _PRODUCT:
        importlib.import_module(name)
