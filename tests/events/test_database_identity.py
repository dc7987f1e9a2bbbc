"""The service detects at its start whether the database is still the database in which the logs were written."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection

from config.launcher import postgres
from events.log import database_identity
from events.log.database_identity import compare_at_start
from events.log.numbering import open_connection
from events.log.server_identity import Identity, identity_of
from events.models import DatabaseIdentity, Head
from identity.models import Tenant
from tests.config.launcher.test_postgres import running
from tests.deadlines import eventually

CRITICAL = logging.CRITICAL


@pytest.fixture
def noted(committed_db: None) -> Iterator[DatabaseIdentity]:
    """The row that identifies the database, as the first start creates it. The row is restored afterwards, because all tests share it."""
    with open_connection() as database:
        database_identity.note(database)
    yield DatabaseIdentity.objects.get()
    with open_connection() as database:
        database_identity.note(database)


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == CRITICAL]


def test_the_first_start_stores_the_database_identity_and_later_starts_find_it_unchanged(
    committed_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    DatabaseIdentity.objects.all().delete()
    assert compare_at_start() is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT system_identifier::text, timeline_id FROM pg_control_system(), pg_control_checkpoint()")
        now = cursor.fetchone()
    row = DatabaseIdentity.objects.get()
    assert (row.system_identifier, row.timeline) == now
    assert compare_at_start() is None
    assert _told(caplog) == []


_TABLE = """
CREATE TABLE events_databaseidentity (
    id smallint PRIMARY KEY, system_identifier varchar(20), timeline bigint, noted_at timestamptz DEFAULT now())
"""


def test_a_recovery_raises_the_timeline_and_a_new_cluster_has_another_identifier(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    with running(first):
        postgres.ensure_database(first)
        with psycopg.connect(postgres.url_of(first), autocommit=True) as database:
            database.execute(_TABLE)
            database_identity.note_first(database)
            assert database_identity.compare(database) is None
            database.execute("ALTER SYSTEM SET restore_command = 'false'")
            noted = identity_of(database)
    [configuration] = first.rglob("postgresql.auto.conf")
    (configuration.parent / "recovery.signal").touch()
    with running(first):
        with psycopg.connect(postgres.url_of(first), autocommit=True) as database:
            eventually(lambda: database.execute("SELECT NOT pg_is_in_recovery()").fetchone() == (True,))
            difference = database_identity.compare(database)
            assert difference is not None
            assert difference.noted == noted
            assert difference.now == Identity(noted.system_identifier, noted.timeline + 1)
            database_identity.note(database)
            assert database_identity.compare(database) is None
    with running(second):
        postgres.ensure_database(second)
        with psycopg.connect(postgres.url_of(second), autocommit=True) as database:
            assert identity_of(database).system_identifier != noted.system_identifier


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"system_identifier": "7000000000000000001"}, "another database cluster"), ({"timeline": 4_000_000_000}, "another timeline")],
)
def test_a_difference_is_reported_at_each_start_and_changes_nothing(
    noted: DatabaseIdentity, tenant: Tenant, caplog: pytest.LogCaptureFixture, changed: dict[str, Any], named: str
) -> None:
    DatabaseIdentity.objects.update(**changed)
    for _ in range(2):
        caplog.clear()
        assert compare_at_start() is not None
        [told] = _told(caplog)
        assert named in told
        assert "manage.py events restored --all" in told
    assert Head.objects.get(pk=tenant.pk).epoch == 1
    [warning] = [message for message in run_checks(databases=["default"]) if message.id == "events.W003"]
    assert named in warning.msg


def test_the_new_database_identity_is_stored_and_cursors_are_kept_if_nothing_was_lost(noted: DatabaseIdentity, tenant: Tenant) -> None:
    DatabaseIdentity.objects.update(system_identifier="7000000000000000001")
    out = StringIO()
    call_command("events", "restored", "--nothing-lost", stdout=out)
    assert f"Noted this database: system identifier {noted.system_identifier}, timeline {noted.timeline}." in out.getvalue()
    assert compare_at_start() is None
    assert Head.objects.get(pk=tenant.pk).epoch == 1


def test_a_start_on_a_server_that_refuses_the_query_succeeds_with_one_warning(
    noted: DatabaseIdentity, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"plain_{noted.system_identifier}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE IF EXISTS {role}")
        cursor.execute(f"CREATE ROLE {role}")
        cursor.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    try:
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", f"-c role={role}")
        assert compare_at_start() is None
    finally:
        monkeypatch.undo()
        with connection.cursor() as cursor:
            cursor.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
            cursor.execute(f"DROP ROLE {role}")
    [warning] = [record.getMessage() for record in caplog.records if record.name == "events.log.database_identity"]
    assert "was not checked: permission denied for function pg_control_system" in warning
    assert "Grant EXECUTE on pg_control_system()" in warning


def test_a_start_during_a_database_outage_succeeds_with_one_warning(
    committed_db: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    assert compare_at_start() is None
    [warning] = [record.getMessage() for record in caplog.records if record.name == "events.log.database_identity"]
    assert warning.endswith(psycopg.OperationalError.__name__)
