"""The databases of a run. The schema is created in one database, and every other database is a copy of it.

No test connects to the database with the schema. The last process of the run removes this database. If the run is killed, the next
run on the same server removes it. Each process of a run holds an advisory lock, which the database server releases when the process
ends. So other runs can find out whether a process of the run still exists.

Many consecutive short runs can use one database, which `TEST_KEPT_DATABASE` names. The first run creates this database, and no run
removes the database.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql

from config.schema.restoring import restore_schema

_PREFIX = "test_migrated_"
# The database with the schema. All workers of a run compute the same name.
_TEMPLATE = _PREFIX + (os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(16))
_KEPT = os.environ.get("TEST_KEPT_DATABASE")
# An advisory lock has two numbers of 32 bits. The first number is its kind, and the second number is the hashtext of a database name.
_LIVES, _MAKES = 1, 2


@contextmanager
def migrated_test_database() -> Iterator[None]:
    """Create the test database of this process, and remove it at the end."""
    if _KEPT and _is_there(_KEPT):
        with connected_to(_KEPT):
            yield
        return
    # An advisory lock is visible only in the database in which it was taken, so all processes take their locks in the database `postgres`.
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock_shared(%s, hashtext(%s))", [_LIVES, _TEMPLATE])
        name = _KEPT or f"test_{connection.settings_dict['NAME']}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
        _make_template(server)
        # A killed run may have left a database with the name `name`. If another run still uses this database, the statement fails.
        _execute(server, "DROP DATABASE IF EXISTS {}", name)
        create_migrated(server, name)
        with connected_to(name):
            yield
        if not _KEPT:
            _drop(server, name)
        server.execute("SELECT pg_advisory_unlock_shared(%s, hashtext(%s))", [_LIVES, _TEMPLATE])
        _remove_abandoned(server)


def create_migrated(server: psycopg.Connection, name: str) -> None:
    """Create a migrated database to which no test has written. `server` must be in autocommit mode."""
    _execute(server, "CREATE DATABASE {} TEMPLATE {}", name, _TEMPLATE)


def _make_template(server: psycopg.Connection) -> None:
    server.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_MAKES, _TEMPLATE])
    try:
        if _exists(server, _TEMPLATE):
            return
        _remove_abandoned(server)
        _execute(server, "CREATE DATABASE {}", _TEMPLATE)
        with connected_to(_TEMPLATE):
            connection.ensure_connection()
            restore_schema(connection.connection)
            # If the stored dump of the schema is not for this checkout or this server, `restore_schema` has restored nothing: then this
            # command runs all migrations.
            call_command("migrate", verbosity=0, interactive=False)
    finally:
        server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_MAKES, _TEMPLATE])


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """Make Django use another database of the same server."""
    usual = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        # PostgreSQL copies and drops a database only if no connection to the database is open.
        connections.close_all()
        connection.settings_dict["NAME"] = usual


def _is_there(name: str) -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="postgres", autocommit=True) as server:
        return _exists(server, name)


def _exists(server: psycopg.Connection, name: str) -> bool:
    return server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def _remove_abandoned(server: psycopg.Connection) -> None:
    """Drop the databases of runs whose processes have all ended."""
    for (name,) in server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX]).fetchall():
        (is_abandoned,) = server.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LIVES, name]).fetchone() or (False,)
        if is_abandoned:
            _execute(server, "DROP DATABASE IF EXISTS {}", name)
            server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_LIVES, name])


def _drop(server: psycopg.Connection, database: str) -> None:
    # Processes and threads of tests may still have connections.
    _execute(server, "DROP DATABASE IF EXISTS {} WITH (FORCE)", database)


def _execute(server: psycopg.Connection, statement: LiteralString, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
