"""`manage.py migrate` while other transactions run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from foundation.database.migration_limits import concurrent_indexes, set_limits
from tests.databases import create_migrated
from tests.deadlines import eventually
from tests.faults.worker import url_of_test_database as database_url

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "test_migrations"
LOCK_SECONDS = 0.3


@pytest.fixture
def migrated_url(committed_db: None) -> Iterator[str]:
    """The URL of a migrated database that the test may change."""
    name = f"{DATABASE}_{os.getpid()}"
    url = database_url()
    with psycopg.connect(url, dbname="postgres", autocommit=True) as server:
        create_migrated(server, name)
        yield url.replace(f"/{connection.settings_dict['NAME']}", f"/{name}", 1)
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def table(committed_db: None) -> Iterator[str]:
    """A table with a row."""
    name = f"migrated_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} AS SELECT 1 AS number")
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")
    connection.close()


def _migrate_back(url: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DATABASE_URL": url, "MIGRATION_LOCK_TIMEOUT_SECONDS": str(LOCK_SECONDS)}
    command = [sys.executable, "-W", "ignore", "manage.py", "migrate", "events", "0004"]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment | {"DJANGO_SETTINGS_MODULE": "config.settings.test"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_migration_that_waits_for_a_lock_stops_with_an_explanation_and_succeeds_later(migrated_url: str) -> None:
    with psycopg.connect(migrated_url, application_name="a long report") as holder:
        process = holder.info.backend_pid
        holder.execute("SELECT 1 FROM events_head LIMIT 1")

        refused = _migrate_back(migrated_url)

    assert refused.returncode == 1
    assert "The migration events.0005_timeline waited 0.3 s for a lock and stopped" in refused.stderr
    assert "The migration changed nothing." in refused.stderr
    assert f"process {process} (a long report), idle in transaction, open for" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert _migrate_back(migrated_url).returncode == 0


def _is_waiting_for_a_transaction() -> bool:
    with psycopg.connect(database_url()) as database:
        return database.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'virtualxid'").fetchone() is not None


def _is_valid(index: str) -> bool:
    with psycopg.connect(database_url()) as database:
        return database.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index]).fetchone() == (True,)


def test_the_lock_timeout_does_not_limit_the_concurrent_creation_of_an_index(table: str) -> None:
    statement = f"CREATE INDEX CONCURRENTLY {table}_number ON {table} (number)"
    failures: list[Exception] = []

    def create() -> None:
        try:
            set_limits(connection, lock_seconds=0.05)
            with concurrent_indexes(connection), connection.cursor() as cursor:
                cursor.execute(statement)
                cursor.execute("SHOW lock_timeout")
                assert cursor.fetchone() == ("50ms",)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    with psycopg.connect(database_url()) as writer:
        writer.execute(f"INSERT INTO {table} VALUES (2)".encode())  # noqa: S608  (a constant)
        creating = threading.Thread(target=create)
        creating.start()
        eventually(lambda: _is_waiting_for_a_transaction() or failures, seconds=20)
        # Wait longer than the lock timeout of the session (0.05 s).
        creating.join(0.3)
        assert creating.is_alive()
    creating.join(20)
    assert failures == []
    assert _is_valid(f"{table}_number")


def test_an_index_that_an_interrupted_migration_left_invalid_is_created_again(table: str) -> None:
    index = f"{table}_number"
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")  # noqa: S608  (a constant)
        with pytest.raises(Exception, match="could not create unique index"):
            cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {index} ON {table} (number)")
        assert not _is_valid(index)
        cursor.execute(f"TRUNCATE {table}")

        with concurrent_indexes(connection):
            cursor.execute(f'CREATE UNIQUE INDEX CONCURRENTLY "{index}" ON {table} (number)')

    assert _is_valid(index)
