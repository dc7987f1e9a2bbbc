"""The databases of a run: the migrations are applied once, and whatever else needs a migrated database copies that one.

With `KEEP_TEST_SCHEMA=1` on a server of the developer's own, a migrated database is also kept for later runs, one per content of the
migrations, so that only the first run of a schema migrates.

The copy that nobody connects to lives as long as a process of the run. A run that was killed leaves it behind, and the next
one on the same server removes it: whether a run lives is told by a lock that the server takes back with the connection.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.db import connection, connections
from django.test.utils import setup_databases, teardown_databases
from psycopg import sql

_PREFIX = "test_migrated_"
# The workers of a run know each other by this name.
_TEMPLATE = _PREFIX + (os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(16))
_KEPT_PREFIX = "test_schema_"
_KEPT_COUNT = 8
# hashtext folds a name to the 32 bits of a lock; the first number keeps the two kinds of locks apart.
_LIVES, _MAKES = 1, 2


@contextmanager
def migrated_test_database() -> Iterator[None]:
    """Make the test database of this process, and remove it at the end."""
    # Locks belong to a database; everybody has this one.
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock_shared(%s, hashtext(%s))", [_LIVES, _TEMPLATE])
        configuration = _made(server)
        yield
        _end_connections(server, connection.settings_dict["NAME"])
        connections.close_all()
        teardown_databases(configuration, verbosity=0)
        server.execute("SELECT pg_advisory_unlock_shared(%s, hashtext(%s))", [_LIVES, _TEMPLATE])
        _remove_abandoned(server)


def create_migrated(server: psycopg.Connection, name: str) -> None:
    """Create a database without any rows of tests; `server` is in autocommit mode."""
    _execute(server, "CREATE DATABASE {} TEMPLATE {}", name, _TEMPLATE)


def _made(server: psycopg.Connection) -> Any:
    server.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_MAKES, _TEMPLATE])
    try:
        is_there = _exists(server, _TEMPLATE)
        kept = _kept_name()
        if template := _TEMPLATE if is_there else kept if kept and _exists(server, kept) else None:
            # Django applies no migration then, because it finds them all applied.
            connection.settings_dict["TEST"]["TEMPLATE"] = template
        configuration = setup_databases(verbosity=0, interactive=False, aliases=["default"])  # type: ignore[arg-type]  # the stubs mix it up with the configuration
        if not is_there:
            _remove_abandoned(server)
            # A database is copied while nobody is connected to it.
            connections.close_all()
            _execute(server, "CREATE DATABASE {} TEMPLATE {}", _TEMPLATE, connection.settings_dict["NAME"])
            if kept:
                _keep(server, kept)
        return configuration
    finally:
        server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_MAKES, _TEMPLATE])


def _kept_name() -> str | None:
    """Return the name under which this content of the migrations is kept, or None when no copy is kept."""
    if os.environ.get("KEEP_TEST_SCHEMA") != "1":
        return None
    root = Path(__file__).parent.parent
    content = hashlib.sha256()
    for file in sorted([*root.glob("*/migrations/*.py"), *root.glob("requirements/base.lock")]):
        content.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return _KEPT_PREFIX + content.hexdigest()[:32]


def _keep(server: psycopg.Connection, kept: str) -> None:
    """Copy this run's schema for later runs, once, and drop the oldest copies."""
    server.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_MAKES, _KEPT_PREFIX])
    try:
        if not _exists(server, kept):
            _execute(server, "CREATE DATABASE {} TEMPLATE {}", kept, _TEMPLATE)
        names = "SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY oid DESC OFFSET %s"
        for (name,) in server.execute(names, [_KEPT_PREFIX, _KEPT_COUNT]).fetchall():
            _execute(server, "DROP DATABASE IF EXISTS {}", name)
    finally:
        server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_MAKES, _KEPT_PREFIX])


def _exists(server: psycopg.Connection, name: str) -> bool:
    return server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def _remove_abandoned(server: psycopg.Connection) -> None:
    """Drop the copies of runs of which no process is left."""
    for (name,) in server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX]).fetchall():
        (is_abandoned,) = server.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LIVES, name]).fetchone() or (False,)
        if is_abandoned:
            _execute(server, "DROP DATABASE IF EXISTS {}", name)
            server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_LIVES, name])


def _end_connections(server: psycopg.Connection, database: str) -> None:
    # Processes and threads of tests may still hold connections that would keep the database from going.
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", [database])


def _execute(server: psycopg.Connection, statement: LiteralString, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
