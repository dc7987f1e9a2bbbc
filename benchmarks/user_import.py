"""Measures user imports with and without recording: rate, steadiness, memory, and the delay of concurrent writers.

Run with `.venv/bin/python -m benchmarks.user_import [users]` against a migrated database (`DATABASE_URL`). A run makes three imports, each
into a new tenant: all rows, recorded and numbered; at most 20,000 rows, recorded and numbered while another thread writes in the tenant;
and at most 20,000 rows without triggers or recorder. The benchmark does not delete the tenants.
"""

from __future__ import annotations

import io
import os
import resource
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
os.environ["EVENTS_NUMBERER_ENABLED"] = "0"

import django

django.setup()

from django.db import connection  # noqa: E402
from django.db import connections as database_connections  # noqa: E402
from django.db.models.signals import post_save  # noqa: E402

from events.log.numbering import number_tenant, open_connection  # noqa: E402
from foundation.hooks import rows_changed  # noqa: E402
from identity.imports.import_file import read_rows  # noqa: E402
from identity.imports.imports import CHUNK_ROWS, start_import  # noqa: E402
from identity.models import Connection  # noqa: E402
from identity.services import connections, tenants, users  # noqa: E402
from identity.services.jobs import run_next_chunk  # noqa: E402


@dataclass
class Measured:
    """Seconds and resident memory of each chunk, and the seconds to store the file."""

    stored: float = 0.0
    seconds: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)

    def rate(self, part: slice = slice(None)) -> float:
        return CHUNK_ROWS * len(self.seconds[part]) / sum(self.seconds[part])


class RowFile(io.RawIOBase):
    """A file whose rows are generated while they are read; nothing is stored."""

    def __init__(self, count: int) -> None:
        self._lines = (
            b'{"email":"user%d@example.test","given_name":"Ada","app_metadata":{"plan":"%s"}}\n' % (n, b"x" * 200) for n in range(count)
        )
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while length < size and (line := next(self._lines, b"")):
            parts.append(line)
            length += len(line)
        content = b"".join(parts)
        self._rest = content[size:]
        return content[:size]


def new_connection() -> Connection:
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    return connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")


def run_import(people: Connection, count: int) -> Measured:
    measured = Measured()
    started = time.perf_counter()
    job = start_import(tenant_id=people.tenant_id, connection_id=people.pk, rows=read_rows(RowFile(count)))  # type: ignore[arg-type]  # it reads
    measured.stored = time.perf_counter() - started
    with open_connection() as database:
        while True:
            started = time.perf_counter()
            if not run_next_chunk(job.pk):
                return measured
            number_tenant(people.tenant_id, database)
            measured.seconds.append(time.perf_counter() - started)
            measured.resident.append(resident_mib())


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:  # noqa: PTH123  (it is read after every chunk)
        return int(statm.read().split()[1]) * resource.getpagesize() / 1024 / 1024


@contextmanager
def another_writer(people: Connection) -> Iterator[list[float]]:
    """Change a user of the same tenant continuously from a thread; yield the duration of each change."""
    user = users.create_user(tenant_id=people.tenant_id, connection=people, email="other@example.test")
    pauses: list[float] = []
    stopping = threading.Event()

    def write() -> None:
        number = 0
        while not stopping.wait(0.005):
            number += 1
            started = time.perf_counter()
            users.update_user(tenant_id=people.tenant_id, user_id=user.user_id, changes={"nickname": f"n{number}"})
            pauses.append(time.perf_counter() - started)
        database_connections.close_all()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield pauses
    finally:
        stopping.set()
        thread.join()


@contextmanager
def recording_off() -> Iterator[None]:
    """Turn recording off: no receivers and, in this session, no triggers."""
    announced, saved = rows_changed.receivers, post_save.receivers
    rows_changed.receivers = []
    post_save.receivers = [entry for entry in saved if not str(entry[0][0]).startswith("events.saved")]
    for signal in (rows_changed, post_save):
        signal.sender_receivers_cache.clear()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = origin")
        rows_changed.receivers, post_save.receivers = announced, saved
        for signal in (rows_changed, post_save):
            signal.sender_receivers_cache.clear()


def main(count: int) -> None:
    recorded = run_import(new_connection(), count)
    quarter = max(len(recorded.seconds) // 4, 1)
    first, last = recorded.rate(slice(None, quarter)), recorded.rate(slice(-quarter, None))
    print(f"{count:,} users recorded and numbered at {recorded.rate():,.0f} users/s; the file was stored in {recorded.stored:.1f} s")
    print(f"first quarter {first:,.0f}/s, last quarter {last:,.0f}/s")
    print(f"resident memory {recorded.resident[quarter - 1]:.0f} MiB after the first quarter, {recorded.resident[-1]:.0f} MiB at the end")
    people = new_connection()
    with another_writer(people) as pauses:
        beside = run_import(people, min(count, 20_000))
    print(f"with another writer {beside.rate():,.0f} users/s, longest chunk {max(beside.seconds) * 1000:.0f} ms")
    median = sorted(pauses)[len(pauses) // 2]
    print(f"{len(pauses):,} changes of the writer: median {median * 1000:.1f} ms, longest {max(pauses) * 1000:.0f} ms")
    people = new_connection()
    with recording_off():
        bare = run_import(people, min(count, 20_000))
    ratio = bare.rate() / recorded.rate(slice(None, len(bare.seconds)))
    print(f"recording off {bare.rate():,.0f} users/s; the same number of recorded users takes {ratio:.2f} times as long")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
