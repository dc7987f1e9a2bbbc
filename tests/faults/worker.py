"""A real Celery worker in its own process group, and the records that the destination of its deliveries wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings

from tests.deadlines import eventually
from tests.faults.recording import DIRECTORY_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
# The maximum time until a worker is ready. It is long, because a worker starts several processes while the servers of the test run.
_READY_SECONDS = 180.0


class Worker:
    """`celery -A config worker` with the code in `source` and the test's database. `directory` contains its log, records and failpoints."""

    def __init__(self, directory: Path, redis_url: str, *, concurrency: int = 2, source: str | Path = ROOT, **variables: str) -> None:
        self.directory = directory
        self._log = directory / f"worker-{len(list(directory.glob('worker-*')))}.log"
        environment = {**environment_of(directory, redis_url), **variables}
        command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--include", "tests.faults.recording"]
        command += ["--concurrency", str(concurrency), "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=source, env=environment, stdout=log, stderr=log, start_new_session=True)
        eventually(lambda: " ready." in self.log or self.process.poll() is not None, seconds=_READY_SECONDS)
        assert self.process.poll() is None, self.log

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def children(self) -> list[int]:
        """Return the ids of the processes that run tasks."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def kill(self) -> None:
        """Kill the whole worker, like a machine failure."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # The worker has already ended.
        self.process.wait(20)

    def stop(self) -> int:
        """Ask the worker to stop, and return its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(30)
        finally:
            self.kill()


def environment_of(directory: Path, redis_url: str) -> dict[str, str]:
    """Return the environment of a process that uses the test's database and is killed at the test's failpoints."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        # A frozen Redis is detected as quickly as in production.
        "REDIS_TIMEOUT_SECONDS": "0.2",
        "DATABASE_URL": url_of_test_database(),
        "REDIS_URL": redis_url,
        "REDIS_PREFIX": directory.name,
        "DELIVERY_NUDGES_ENABLED": "1",
        "DELIVERY_SWEEP_SECONDS": "0.2",
        "DELIVERY_NUDGE_SECONDS": "2",
        "FAILPOINTS_DIR": str(directory),
        DIRECTORY_VARIABLE: str(directory),
    }


def url_of_test_database() -> str:
    """Return the URL of this run's test database, for other processes."""
    database = settings.DATABASES["default"]
    user = quote(str(database["USER"]), safe="")
    password = quote(str(database["PASSWORD"]), safe="")
    credentials = f"{user}:{password}@" if password else f"{user}@" if user else ""
    host, port = str(database["HOST"]), str(database["PORT"])
    if host.startswith("/"):
        return f"postgresql://{credentials}/{database['NAME']}?host={quote(host, safe='')}" + (f"&port={port}" if port else "")
    return f"postgresql://{credentials}{host}{':' + port if port else ''}/{database['NAME']}"


def recorded(directory: Path, *, step: str = "start", keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return the records that the destination wrote at this step of its runs (`start` or `end`), in the order of writing."""
    path = directory / "events"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    wanted = None if keys is None else set(keys)
    return [line for line in lines if line["step"] == step and (wanted is None or line["key"] in wanted)]


def assert_in_order(directory: Path, expected: dict[str, int]) -> None:
    """Assert that each key's events 0 to n-1 were all accepted, and that no earlier event started after a later event."""
    for key, count in expected.items():
        numbers = [line["number"] for line in recorded(directory, keys=[key])]
        assert numbers == sorted(numbers), key
        ended = {line["number"] for line in recorded(directory, step="end", keys=[key])}
        assert ended == set(range(count)), key
