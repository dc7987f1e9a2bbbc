"""Private servers that a test may kill, freeze and flush.

The module also contains the tenants and writers on these servers, and reads the state at the end of a test.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import redis
from django.conf import settings

from config.launcher import postgres, valkey
from config.launcher.processes import Process, Program, wait_until_ready
from config.schema.restoring import restore_schema
from events.log.cursor import Cursor, CursorSealer
from events.log.envelope import encode_envelope, event_source
from foundation.ids import new_event_id
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.faults.freezing import family
from tests.faults.invariants import Entry, History, Place, Reader
from tests.faults.programme import seed
from tests.faults.writers import Writers

ROOT = Path(__file__).resolve().parents[2]
_TENANTS_AT_ONCE = 12
_BEGIN_SECONDS = 150.0
# These times are shorter than in production, so that a test can wait for them.
_TIMES = {"EVENTS_HEARTBEAT_SECONDS": "0.5", "EVENTS_RETRY_MS": "200", "EVENTS_LEASE_SECONDS": "3", "EVENTS_DRAIN_SECONDS": "3"}


@dataclass(frozen=True)
class Seeded:
    """A tenant with a subscriber's token. `base` is the end of its log before the writers started."""

    id: str
    host: str
    token: str
    connection: str
    users: list[str]
    group: str
    base: int

    @property
    def sealer(self) -> CursorSealer:
        return CursorSealer(settings.CURSOR_KEYS, tenant_id=self.id)

    @property
    def start(self) -> str:
        """The cursor directly before the first change of a writer, in the form in which a client sends it."""
        return self.sealer.seal(Cursor(1, self.base))

    def opened(self, offset: str) -> Place:
        cursor = self.sealer.open(offset)
        return Place(cursor.epoch, cursor.position)


class World:
    """A PostgreSQL server that stays consistent after crashes, a Redis server, and all processes that use them."""

    # The directory with the source that processes run.
    source = ROOT

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="faults-"))
        # The account that runs PostgreSQL must be able to traverse the directory.
        self.directory.chmod(0o711)
        self.seed = seed()
        self.random = random.Random(self.seed)
        self.postgres: Process
        self.redis: Process
        # The directory in which the directory of PostgreSQL is created.
        self.database_home = self.directory
        self._start_database()
        self._start_redis()
        self._tenants: list[Seeded] = []
        self._make_schema()

    @property
    def environment(self) -> dict[str, str]:
        return {
            **_TIMES,
            "DATABASE_URL": self.address(),
            "REDIS_URL": self.redis_url,
            "REDIS_PREFIX": "faults",
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            # A frozen Redis is detected as quickly as in production.
            "REDIS_TIMEOUT_SECONDS": "0.2",
            "EVENTS_NUMBERER_ENABLED": "1",
            "RATE_LIMITS_ENABLED": "0",
            "EVENTS_MAX_CONNECTIONS_PER_TENANT": "400",
        }

    def address(self, database: str = postgres.DATABASE) -> str:
        """Return the `DATABASE_URL` of a database on this server."""
        return postgres.url_of(self.database_home, database)

    @property
    def redis_url(self) -> str:
        return valkey.url_of(self.directory)

    def close(self) -> None:
        self.thaw(self.postgres, self.redis)
        self.redis.stop()
        self.postgres.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def tenant(self) -> Seeded:
        """Return an unused tenant."""
        if not self._tenants:
            self._tenants = self.new_tenants(_TENANTS_AT_ONCE)
        return self._tenants.pop()

    def new_tenants(self, number: int, **variables: str) -> list[Seeded]:
        """Create tenants, in a new process with these environment variables."""
        made = json.loads(self._run("-m", "tests.faults.seeding", str(number), **variables))
        return [Seeded(**one) for one in made]

    def append(self, tenant: Seeded, *, keys: int, rounds: int) -> str:
        """Create a stream, then append `rounds` events of each of `keys` users to the log. Return the id of the stream.

        The destination of the stream is the recorder of the tests.
        """
        return self._run("-m", "tests.faults.appending", tenant.id, str(keys), str(rounds)).strip()

    def web(self, server: str = "uvicorn", **variables: str) -> Any:
        """Return a context manager that runs a web process on the servers of this world."""
        return web_process(server, source=self.source, **(self.environment | variables))

    @contextmanager
    def two_webs(self, **variables: str) -> Iterator[list[WebProcess]]:
        with ExitStack() as stack:
            yield [stack.enter_context(self.web(**variables)) for _ in range(2)]

    @contextmanager
    def writers(
        self, tenant: Seeded, number: int = 2, *, count: int = 10**9, think: float = 0.01, variables: Mapping[str, str] | None = None
    ) -> Iterator[Writers]:
        """Run writers of a tenant, each in its own process, and wait until each has begun to write. At the end of the block, kill them."""
        directory = Path(tempfile.mkdtemp(dir=self.directory))
        writers, environment = Writers(tenant, directory), os.environ | self.environment | dict(variables or {})
        with (directory / "errors").open("wb") as errors:
            for _ in range(number):
                name = f"w{secrets.token_hex(3)}"
                specification = directory / f"{name}.json"
                document = {"name": name, "tenant": tenant.__dict__, "seed": self.random.random(), "think": think, "count": count}
                specification.write_text(json.dumps({**document, "log": str(directory / f"{name}.log"), "stop": str(directory / "stop")}))
                command = [sys.executable, "-m", "tests.faults.writing", str(specification)]
                writers.processes.append(subprocess.Popen(command, cwd=self.source, env=environment, stdout=errors, stderr=errors))
        try:
            eventually(writers.have_begun, seconds=_BEGIN_SECONDS)
            yield writers
        finally:
            for process in writers.processes:
                process.kill()
                process.wait()

    def query(self, statement: str, *values: Any, database: str = postgres.DATABASE) -> list[tuple[Any, ...]]:
        """Run a statement without Django, and return its rows. Wait up to 30 seconds while the server starts."""
        deadline = time.monotonic() + 30
        while True:
            try:
                with psycopg.connect(self.address(database), autocommit=True, connect_timeout=5) as connection:
                    cursor = connection.execute(statement.encode(), values)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def head(self, tenant: Seeded) -> Place:
        [(epoch, position)] = self.query("SELECT epoch, position FROM events_head WHERE tenant_id = %s", tenant.id)
        return Place(epoch, position)

    def cursor(self, tenant: Seeded, **changes: int) -> Cursor:
        """Return the end of the tenant's log as a cursor."""
        return Cursor(**(self.head(tenant)._asdict() | changes))

    def is_numbered(self, tenant: Seeded) -> bool:
        return not self.query("SELECT 1 FROM events_outbox WHERE tenant_id = %s LIMIT 1", tenant.id)

    def backends(self) -> int:
        return int(self.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")[0][0])

    def lengthen_log(self, tenant: Seeded, count: int, padding: int) -> None:
        """Append `count` events with `padding` additional bytes each to the log. No writer of the tenant may run in the meantime."""
        [(position, stream_id)] = self.query("SELECT position, stream_id FROM events_head WHERE tenant_id = %s", tenant.id)
        now = datetime.now(UTC)
        kind = "connection.updated"
        with psycopg.connect(self.address()) as connection:
            for at in range(position + 1, position + count + 1):
                event_id = new_event_id()
                body = encode_envelope(
                    event_type=kind,
                    source=event_source("svc", tenant.id, tenant.host),
                    event_id=event_id,
                    time=now,
                    data={"object": {"id": tenant.connection, "padding": "x" * padding}},
                    tenant_id=tenant.id,
                    stream_id=stream_id,
                    max_bytes=settings.EVENT_MAX_BYTES,
                )
                connection.execute(
                    "WITH e AS (INSERT INTO events_event (event_id, tenant_id, type, root, time, body) VALUES (%s, %s, %s, %s, %s, %s)"
                    " RETURNING id) INSERT INTO events_logentry (event_id, tenant_id, position, recorded_at)"
                    " SELECT id, %s, %s, clock_timestamp() FROM e",
                    [event_id, tenant.id, kind, f"connection:{tenant.connection}", now, body, tenant.id, at],
                )
            connection.execute("UPDATE events_head SET position = %s WHERE tenant_id = %s", [position + count, tenant.id])

    def recorded(self, tenant: Seeded) -> dict[int, float]:
        """Return the Unix time in seconds at which each position was assigned."""
        rows = self.query("SELECT position, extract(epoch FROM recorded_at)::float FROM events_logentry WHERE tenant_id = %s", tenant.id)
        return dict(rows)

    def slots(self, tenant: Seeded) -> int:
        """Return the number of connection slots that the open streams of the tenant use."""
        client = self.redis_client()
        try:
            return int(str(client.zcount(f"{self.environment['REDIS_PREFIX']}:streams:{tenant.id}", time.time(), "+inf")))
        finally:
            client.close()

    def allow_hints(self, *, allowed: bool) -> None:
        """Make Redis accept all published messages or refuse all of them."""
        client = self.redis_client()
        client.acl_setuser("default", enabled=True, commands=["+publish" if allowed else "-publish"])
        client.close()

    def redis_client(self) -> redis.Redis:
        return redis.Redis.from_url(valkey.url_of(self.directory), socket_timeout=2.0)

    def restart_postgres(
        self, mode: signal.Signals = signal.SIGINT, environment: Mapping[str, str] | None = None, settings: Iterable[str] = ()
    ) -> None:
        """Stop the server, and start it again. SIGINT is a fast shutdown. SIGQUIT is an immediate shutdown, like a crash."""
        self.postgres.popen.send_signal(mode)
        self.postgres.popen.wait(30)
        self.start_postgres(environment, settings)

    def start_postgres(self, environment: Mapping[str, str] | None = None, settings: Iterable[str] = ()) -> None:
        """Start the stopped server with these environment variables and these settings of PostgreSQL (`name=value`)."""
        program = postgres.prepare(self.database_home, durable=True)
        command = [*program.command, *(part for setting in settings for part in ("-c", setting))]
        known = os.environ | dict(environment) if environment else program.environment
        self.postgres = self._start(replace(program, command=tuple(command), environment=known))

    def terminate_backends(self) -> None:
        self.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", postgres.DATABASE
        )

    def stop_redis(self) -> None:
        self.redis.kill()

    def start_redis(self) -> None:
        self._start_redis()

    def freeze(self, process: Process) -> None:
        """Freeze a server with all its processes, so that they accept connections and never answer."""
        for pid in family(process.pid):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self, *processes: Process) -> None:
        for process in processes:
            for pid in family(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def history(self, tenant: Seeded, writers: Iterable[Writers], readers: Iterable[Reader], *, foreign: Iterable[Seeded] = ()) -> History:
        """Read the database at the end of a test, and combine its rows with the records of writers and readers."""
        [(epoch, position, floor)] = self.query("SELECT epoch, position, floor FROM events_head WHERE tenant_id = %s", tenant.id)
        rows = self.query(
            "SELECT l.position, e.type, e.body FROM events_logentry l JOIN events_event e ON e.id = l.event_id"
            " WHERE l.tenant_id = %s ORDER BY l.position",
            tenant.id,
        )
        return History(
            tenant=tenant.id,
            operations=[operation for some in writers for operation in some.operations()],
            committed={name for (name,) in self.query("SELECT id FROM fault_ledger WHERE tenant_id = %s AND committed", tenant.id)},
            log=[Entry(Place(epoch, at), kind, bytes(body)) for at, kind, body in rows],
            floor=floor,
            base=tenant.base,
            head=Place(epoch, position),
            tables=self._tables(tenant),
            readers=list(readers),
            open_cursor=tenant.opened,
            foreign_ids=[other.id.encode() for other in foreign],
        )

    def _tables(self, tenant: Seeded) -> Mapping[str, str]:
        statements = (
            "SELECT user_id, coalesce(nickname, '') FROM identity_user WHERE tenant_id = %s",
            "SELECT id, name FROM identity_group WHERE tenant_id = %s",
            "SELECT id, coalesce(display_name, '') FROM identity_organization WHERE tenant_id = %s",
            "SELECT m.group_id || '+' || u.user_id, '' FROM identity_groupmember m JOIN identity_user u ON u.id = m.user_id"
            " WHERE m.tenant_id = %s",
        )
        return {entity: mark for statement in statements for entity, mark in self.query(statement, tenant.id)}

    def _make_schema(self) -> None:
        with psycopg.connect(self.address()) as database:
            restore_schema(database)
        self._run("manage.py", "migrate", "--verbosity", "0")

    def _start_database(self) -> None:
        self.start_postgres()
        postgres.ensure_database(self.database_home)

    def _start_redis(self) -> None:
        self.redis = self._start(valkey.prepare(self.directory, durable=False))

    def _start(self, program: Program) -> Process:
        log = self.directory / f"{program.name}.log"
        with log.open("ab") as output:
            process = Process.start(program, output=output)
        wait_until_ready(process, log=log)
        return process

    def _run(self, *arguments: str, answer: str = "", **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.source,
            env=os.environ | self.environment | variables,
            input=answer,
            capture_output=True,
            text=True,
            # Applying migrations takes minutes on a loaded machine.
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout
