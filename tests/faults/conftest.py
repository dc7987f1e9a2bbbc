"""Private servers that a test may freeze or flush, and workers that a test may kill."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis
from django.db import connection

from config.launcher.programs import redis_servers
from tests.deadlines import eventually
from tests.faults import programme
from tests.faults.durations import expected_seconds
from tests.faults.following import Following
from tests.faults.worker import Worker
from tests.faults.world import World
from tests.ports import free_port

# The tests in these files break no server, so `make test` runs them.
_HARMLESS = frozenset({"test_delivery_invariants.py", "test_invariants.py", "test_programme.py"})


class Started(NamedTuple):
    """A fault test that has started: the seconds that it is expected to take, and the time of its start by the monotonic clock."""

    expected: float
    moment: float


_STARTED = pytest.StashKey[Started]()
_HAS_WORLD = pytest.StashKey[bool]()
_BUDGET = programme.Budget(programme.process_began(), programme.limit_seconds())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that break servers, so that `make test` skips them. If the run has a time limit, shuffle the tests by the seed."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in _HARMLESS:
            item.add_marker(pytest.mark.fault)
    if programme.limit_seconds() is not None:
        items[:] = programme.shuffled(items, Path(__file__).parent)


def pytest_report_collectionfinish(items: list[pytest.Item]) -> list[str]:
    """Return the seed that repeats the random decisions of this run. Unlike the header of a run, pytest also prints this line with `-q`."""
    return [f"{programme.SEED_VARIABLE}={programme.seed()}"] if any(item.get_closest_marker("fault") for item in items) else []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start a fault test only if the run has enough time left for it."""
    if item.get_closest_marker("fault") is None:
        return
    starts_world = "world" in getattr(item, "fixturenames", ()) and not item.session.stash.get(_HAS_WORLD, False)
    expected = expected_seconds(item.name, starts_world=starts_world)
    if not _BUDGET.has_time_for(expected, now=time.monotonic(), load=programme.load_per_core()):
        pytest.skip(f"not enough time left in this run; {programme.SEED_VARIABLE}={programme.seed()} repeats its order")
    item.stash[_STARTED] = Started(expected, time.monotonic())
    item.session.stash[_HAS_WORLD] = starts_world or item.session.stash.get(_HAS_WORLD, False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Compare the time of a fault test with its expected time, to measure how slow the machine is."""
    result = yield
    if _STARTED in item.stash:
        _BUDGET.note(item.stash[_STARTED].expected, time.monotonic() - item.stash[_STARTED].moment)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with a time limit if it found fault tests but had no time to start even one of them."""
    started = [_STARTED in item.stash for item in session.items if item.get_closest_marker("fault")]
    if programme.tested_nothing(found=len(started), started=sum(started)):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


class RedisServer:
    """A Redis protocol server on a free port, without persistence."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command = [str(redis_servers().found[0]), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = redis.Redis.from_url(self.url)
        eventually(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def freeze(self) -> None:
        """Make the server hang, so that it accepts connections and never answers."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.client.close()
        self.thaw()
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory whose name is also the prefix of every Redis key."""
    directory = tmp_path / f"w{secrets.token_hex(4)}"
    directory.mkdir()
    return directory


@pytest.fixture
def start_worker(committed_db: None, redis_server: RedisServer, directory: Path) -> Iterator[Callable[..., Worker]]:
    """Start workers that are always killed after the test."""
    workers: list[Worker] = []
    # This worker must ignore rows of earlier tests in the same database.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_eventstream SET status = 'disabled'")

    def start(*, concurrency: int = 2, **variables: str) -> Worker:
        worker = Worker(directory, redis_server.url, concurrency=concurrency, **variables)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        for pid in [worker.process.pid, *(worker.children() if worker.process.poll() is None else [])]:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # The worker has already ended.
        worker.kill()


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """Servers that the stream scenarios may break. Every scenario leaves them running."""
    made = World()
    yield made
    made.close()


@pytest.fixture
def following() -> Iterator[Following]:
    """Subscribers that are stopped after the test."""
    with Following() as running:
        yield running
