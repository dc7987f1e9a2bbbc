"""Imports of users: in chunks, resumable, idempotent, with errors per row; exports that the stream continues."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from events.cursor import CursorSealer
from identity.imported_passwords import bcrypt_form
from identity.models import Connection, Job, JobError, PasswordCredential, Tenant, User
from identity.services import users
from identity.services.exports import export_cursor, exported_users
from identity.services.imports import CHUNK_ROWS, TooManyImports, start_import
from identity.services.jobs import run_job, run_next_chunk, take_unattended_jobs
from tests.events.log_reading import folded, numbered, tables

HASH = "$2b$10$" + "a" * 53


def imported(tenant: Tenant, database_connection: Connection, rows: list[object], *, upsert: bool = False) -> Job:
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows, upsert=upsert)
    assert run_job(job.pk)
    job.refresh_from_db()
    return job


def codes(job: Job) -> list[tuple[int, str]]:
    return [(error.row_number, error.errors[0]["code"]) for error in JobError.objects.filter(job=job)]


def test_new_rows_become_users_with_one_event_each(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": f"user{number}@example.test", "user_metadata": {"n": number}} for number in range(CHUNK_ROWS + 20)]
    job = imported(tenant, database_connection, [*rows])
    assert job.status == "completed"
    assert job.summary == {"total": 520, "inserted": 520, "updated": 0, "failed": 0}
    events = numbered(tenant.pk)
    assert [event["type"] for event in events] == ["connection.created", *["user.created"] * 520]
    assert [event["data"]["object"]["email"] for event in events[1:]] == [row["email"] for row in rows]
    assert folded(events) == tables(tenant.pk)


def test_bad_rows_are_counted_and_named_and_the_others_go_on(tenant: Tenant, database_connection: Connection) -> None:
    users.create_user(tenant_id=tenant.pk, connection=database_connection, email="there@example.test")
    job = imported(
        tenant,
        database_connection,
        [
            {"email": "fine@example.test"},
            {"email": 5},
            {"name": "nobody"},
            {"email": "x@example.test", "surplus": 1},
            {"email": "THERE@example.test"},
            {"email": "fine@example.test"},
            "text",
            {"email": "y@example.test", "app_metadata": {"n": 2**80}},
            {"email": "secret@example.test", "password_hash": "clear text"},
        ],
    )
    assert job.summary == {"total": 9, "inserted": 1, "updated": 0, "failed": 8}
    assert dict(codes(job)) == {
        1: "INVALID_TYPE",
        2: "ANY_OF_MISSING",
        3: "NOT_PASSED",
        4: "CONFLICT",
        5: "DUPLICATED_USER",
        6: "OBJECT_REQUIRED",
        7: "FORMAT",
        8: "MIN_LENGTH",
    }
    assert "clear text" not in json.dumps(list(JobError.objects.filter(job=job).values_list("user", "errors")))


def test_an_upsert_overwrites_the_profile_and_keeps_the_password(tenant: Tenant, database_connection: Connection) -> None:
    user = users.create_user(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", user_metadata={"old": 1})
    users.set_password(user, "correct horse battery staple")
    before = PasswordCredential.objects.get(user=user).password_hash
    rows: list[object] = [{"email": "ADA@example.test", "given_name": "Ada", "user_metadata": {"new": 2}, "password_hash": HASH}]
    job = imported(tenant, database_connection, rows, upsert=True)
    assert job.summary["updated"] == 1
    user = User.objects.of(tenant.pk).get(pk=user.pk)
    assert user.user_metadata == {"new": 2}
    assert PasswordCredential.objects.get(user=user).password_hash == before
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


def test_an_imported_hash_is_stored(tenant: Tenant, database_connection: Connection) -> None:
    imported(tenant, database_connection, [{"email": "ada@example.test", "password_hash": HASH}])
    assert PasswordCredential.objects.get(user__tenant=tenant).password_hash == bcrypt_form(HASH)


def test_a_stopped_import_goes_on_and_imports_nothing_twice(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": f"user{number}@example.test"} for number in range(CHUNK_ROWS * 2 + 1)]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    assert run_next_chunk(job.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_job SET lease_until = now() - interval '1 second' WHERE id = %s", [job.pk])
    assert job.pk in take_unattended_jobs()
    assert run_job(job.pk)
    assert run_job(job.pk)
    job.refresh_from_db()
    assert job.summary["inserted"] == User.objects.of(tenant.pk).count() == CHUNK_ROWS * 2 + 1
    assert job.pk not in take_unattended_jobs()


def test_a_third_import_at_once_is_refused(tenant: Tenant, database_connection: Connection) -> None:
    for _ in range(2):
        start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[])
    with pytest.raises(TooManyImports):
        start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[])


def test_the_commands_import_and_export(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text('{"email": "a@example.test"}\n\n{"email": "b@example.test"}\n{"bad": 1}\n')
    out = StringIO()
    call_command("import_users", str(file), tenant=tenant.pk, connection="people", stdout=out)
    assert "3 rows, 2 inserted, 0 updated, 1 failed" in out.getvalue()
    assert "row 2: NOT_PASSED" in out.getvalue()
    file.write_text("{no json")
    with pytest.raises(CommandError, match="line 1"):
        call_command("import_users", str(file), tenant=tenant.pk, connection="people", stdout=out)
    exported, said = StringIO(), StringIO()
    call_command("export_users", tenant=tenant.pk, stdout=exported, stderr=said)
    assert [json.loads(line)["email"] for line in exported.getvalue().splitlines()] == ["a@example.test", "b@example.test"]
    assert "events cursor: " in said.getvalue()


def test_snapshot_plus_stream_has_no_gap(tenant: Tenant, database_connection: Connection, settings: object) -> None:
    imported(tenant, database_connection, [{"email": f"user{number}@example.test"} for number in range(5)])
    numbered(tenant.pk)
    cursor = export_cursor(tenant.pk)
    snapshot = {user["user_id"]: user for user in exported_users(tenant_id=tenant.pk)}
    late = users.create_user(tenant_id=tenant.pk, connection=database_connection, email="late@example.test")
    opened = CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant.pk).open(cursor)  # type: ignore[attr-defined]  # pytest-django's wrapper
    continued = numbered(tenant.pk)[opened.position :]
    assert [event["data"]["object"]["user_id"] for event in continued] == [late.user_id]
    assert len(snapshot) == 5
