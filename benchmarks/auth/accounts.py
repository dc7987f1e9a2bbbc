"""The processor time of a run, counted separately for the server, PostgreSQL and Redis. The databases count only if they run on this
machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import redis
from django.conf import settings
from django.db import connection

from benchmarks.stream.usage import family, processor_seconds

SERVER, POSTGRESQL, REDIS = "server", "PostgreSQL", "Redis"

# Processor seconds of each process, by group.
Taken = dict[str, dict[int, float]]


class Accounts:
    """Groups of processes. Each group is a given process and all its descendants. The group of a server does not include the databases."""

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots = dict(roots)

    def taken(self) -> Taken:
        """Return the processor time of every process of each group so far."""
        return {name: _of_each(family(pid)) for name, pid in self._roots.items()}

    def since(self, before: Taken) -> dict[str, float]:
        """Return the time that each group has used since `before`. All time of processes that started later counts."""
        now = self.taken()
        return {name: sum(value - before[name].get(pid, 0.0) for pid, value in now[name].items()) for name in self._roots}


def databases() -> dict[str, int]:
    """Return the main processes of PostgreSQL and of the Redis protocol server, if they run on this machine."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    # A remote server has process ids of another machine.
    with suppress(FileNotFoundError):
        if "postgres" in Path(f"/proc/{backend}/comm").read_text():
            found[POSTGRESQL] = _parent(backend)
    process_id = int(redis.Redis.from_url(settings.REDIS_URL).info("server")["process_id"])  # type: ignore[index]  # no coroutine
    if any(name in _name(process_id) for name in ("valkey", "redis")):
        found[REDIS] = process_id
    return found


def _of_each(pids: list[int]) -> dict[int, float]:
    taken = {}
    for pid in pids:
        # Skip a process that ends before its file is read.
        with suppress(OSError):
            taken[pid] = processor_seconds([pid])
    return taken


def _name(pid: int) -> str:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def _parent(pid: int) -> int:
    # The name of the program is in brackets and may contain spaces.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
