"""Judges many mutants with tests that a process has collected once. For each mutant, the process forks a child, which runs the tests.

Collecting the tests for each mutant would take longer than most tests of pure modules.
"""

from __future__ import annotations

import marshal
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pytest

from tests.mutants.children import FirstFailure, Judgement, Verdict, enter, forget_keys, in_a_child, run_pytest
from tests.mutants.grafting import Graft, LoadedFunctions, noted_calls


class CollectedTests:
    """A connection to a process that has collected tests and runs them on request."""

    def __init__(self, requests: Connection) -> None:
        self._requests = requests

    def judge(self, tests: Sequence[str], graft: Graft, longest: float) -> Judgement | None:
        """Run tests with the changed code for at most `longest` seconds. `tests` are names of tests, or of files with tests.

        Return None if the process cannot take the changed code (see `LoadedFunctions.can_take`), or did not collect all the tests.
        """
        self._requests.send((list(tests), {name: marshal.dumps(code) for name, code in graft.items()}, longest))
        answer: tuple[str, str, float, str] | None = self._requests.recv()
        return None if answer is None else Judgement(Verdict(answer[0]), *answer[1:])


@contextmanager
def collected(copy: Path, tests: Sequence[str], load: Callable[[], object] = lambda: None) -> Iterator[CollectedTests]:
    """Start the process that collects the tests of the copy, and then calls `load`. End the process afterwards.

    `load` imports what a test would otherwise import in each child.
    Raises `EOFError` if the tests cannot be collected.
    """
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_the_collector(copy, tests, theirs, load)
    theirs.close()
    try:
        # Wait until the process has imported the modules. If a mutant were planted in the copy before that, the process would import the
        # mutant, too.
        ours.recv()
        yield CollectedTests(ours)
    finally:
        ours.close()
        os.waitpid(pid, 0)


def _be_the_collector(copy: Path, tests: Sequence[str], requests: Connection, load: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.environ["REDIS_PREFIX"] = f"mutants-{os.getpid()}"
        enter(copy)
        code = run_pytest(tests, _Collector(copy, requests, load))
    except BaseException:
        traceback.print_exc()
    os._exit(code)


class _Collector:
    """A pytest plugin that runs the requested tests for each mutant, instead of running all tests once."""

    def __init__(self, copy: Path, requests: Connection, load: Callable[[], object]) -> None:
        self._copy = copy
        self._load = load
        self._requests = requests
        self._noting = ExitStack()

    def pytest_sessionstart(self) -> None:
        self._called = self._noting.enter_context(noted_calls(self._copy))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._load()
        self._noting.close()
        functions = LoadedFunctions(self._copy, self._called)
        self._requests.send("collected")
        with suppress(EOFError):
            while True:
                tests, names, longest = self._requests.recv()
                graft: Graft = {name: marshal.loads(code) for name, code in names.items()}  # noqa: S302  (sent by the parent of this process)
                items = _items_of(session, tests)
                if items and functions.can_take(graft):
                    judgement = _judged(items, functions, graft, longest)
                    self._requests.send((judgement.verdict.value, judgement.detail, judgement.seconds, judgement.output))
                else:
                    self._requests.send(None)
        return True


def _items_of(session: pytest.Session, tests: Sequence[str]) -> list[pytest.Item]:
    """Return the items of the named tests and files in the order of the names, or an empty list if a name is unknown."""
    found: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        found.setdefault(item.nodeid, []).append(item)
        found.setdefault(item.nodeid.partition("::")[0], []).append(item)
    return [item for test in tests for item in found[test]] if all(test in found for test in tests) else []


def _judged(items: Sequence[pytest.Item], functions: LoadedFunctions, graft: Graft, longest: float) -> Judgement:
    forget_keys()

    def work(failure: FirstFailure) -> int:
        functions.take(graft)
        session = items[0].session
        session.config.pluginmanager.register(failure)
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failure.name:
                break
        # Tear down the fixtures of the session directly. A normal end of the session would also write the reports of plugins.
        session._setupstate.teardown_exact(None)
        return int(pytest.ExitCode.TESTS_FAILED if failure.name else pytest.ExitCode.OK)

    return in_a_child(work, longest)
