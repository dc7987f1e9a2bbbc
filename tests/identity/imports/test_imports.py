"""Imports of users in chunks, which are resumed after a stop and report the errors of each row. Exports with a cursor of the stream."""

from __future__ import annotations

import json
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from events.log.cursor import CursorSealer
from foundation.secrets import totp
from identity.exports.exports import export_cursor, exported_users
from identity.factors.user_factors import take_totp
from identity.imports.imported_passwords import bcrypt_form
from identity.imports.imports import CHUNK_ROWS, TooManyImports, start_import
from identity.models import Connection, EnrolledFactor, Job, JobError, PasswordCredential, Tenant, User
from identity.services import users
from identity.services.jobs import run_job, run_next_chunk
from identity.services.passwords import set_password
from tests.events.log_reading import folded, numbered, tables
from tests.factories.models.identity import ConnectionFactory
from tests.identity.stored_passwords import password_fits
from tests.identity.sweeps import take_all_unattended_jobs

HASH = "$2b$10$" + "a" * 53


def imported(tenant: Tenant, database_connection: Connection, rows: list[object], *, upsert: bool = False) -> Job:
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows, upsert=upsert)
    assert run_job(job.pk)
    job.refresh_from_db()
    return job


def codes(job: Job) -> list[tuple[int, str]]:
    return [(error.row_number, error.errors[0]["code"]) for error in JobError.objects.filter(job=job)]


def test_each_new_row_creates_a_user_with_one_event(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": f"user{number}@example.test", "user_metadata": {"n": number}} for number in range(CHUNK_ROWS + 20)]
    job = imported(tenant, database_connection, [*rows])
    assert job.status == "completed"
    assert job.summary == {"total": 520, "inserted": 520, "updated": 0, "failed": 0}
    events = numbered(tenant.pk)
    assert [event["type"] for event in events] == ["connection.created", *["user.created"] * 520]
    assert [event["data"]["object"]["email"] for event in events[1:]] == [row["email"] for row in rows]
    assert folded(events) == tables(tenant.pk)


def test_invalid_rows_are_reported_and_all_other_rows_are_imported(tenant: Tenant, database_connection: Connection) -> None:
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
    set_password(user, "correct horse battery staple")
    before = PasswordCredential.objects.get(user=user).password_hash
    rows: list[object] = [{"email": "ADA@example.test", "given_name": "Ada", "user_metadata": {"new": 2}, "password_hash": HASH}]
    job = imported(tenant, database_connection, rows, upsert=True)
    assert job.summary["updated"] == 1
    user = User.objects.of(tenant.pk).get(pk=user.pk)
    assert user.user_metadata == {"new": 2}
    assert PasswordCredential.objects.get(user=user).password_hash == before
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


def test_an_imported_password_hash_is_stored(tenant: Tenant, database_connection: Connection) -> None:
    imported(tenant, database_connection, [{"email": "ada@example.test", "password_hash": HASH}])
    assert PasswordCredential.objects.get(user__tenant=tenant).password_hash == bcrypt_form(HASH)


def test_a_stopped_import_resumes_and_imports_no_row_twice(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": f"user{number}@example.test"} for number in range(CHUNK_ROWS * 2 + 1)]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    assert run_next_chunk(job.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_job SET lease_until = now() - interval '1 second' WHERE id = %s", [job.pk])
    assert job.pk in take_all_unattended_jobs()
    assert run_job(job.pk)
    assert run_job(job.pk)
    job.refresh_from_db()
    assert job.summary["inserted"] == User.objects.of(tenant.pk).count() == CHUNK_ROWS * 2 + 1
    assert job.pk not in take_all_unattended_jobs()


def test_a_third_concurrent_import_is_refused(tenant: Tenant, database_connection: Connection) -> None:
    for _ in range(2):
        start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[])
    with pytest.raises(TooManyImports):
        start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[])


def test_the_commands_import_and_export_users(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text('{"email": "a@example.test"}\n\n{"email": "b@example.test"}\n{"bad": 1}\n')
    out = StringIO()
    call_command("import_users", str(file), tenant=tenant.pk, connection="people", stdout=out)
    assert "3 rows, 2 inserted, 0 updated, 1 failed" in out.getvalue()
    assert "row 2: NOT_PASSED" in out.getvalue()
    file.write_text("{no json")
    with pytest.raises(CommandError, match="Line 1"):
        call_command("import_users", str(file), tenant=tenant.pk, connection="people", stdout=out)
    exported, said = StringIO(), StringIO()
    call_command("export_users", tenant=tenant.pk, stdout=exported, stderr=said)
    assert [json.loads(line)["email"] for line in exported.getvalue().splitlines()] == ["a@example.test", "b@example.test"]
    assert "events cursor: " in said.getvalue()


def test_an_export_and_the_stream_from_its_cursor_have_no_gap(tenant: Tenant, database_connection: Connection, settings: object) -> None:
    imported(tenant, database_connection, [{"email": f"user{number}@example.test"} for number in range(5)])
    numbered(tenant.pk)
    cursor = export_cursor(tenant.pk)
    snapshot = {user["user_id"]: user for user in exported_users(tenant_id=tenant.pk)}
    late = users.create_user(tenant_id=tenant.pk, connection=database_connection, email="late@example.test")
    opened = CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant.pk).open(cursor)  # type: ignore[attr-defined]  # pytest-django's wrapper
    continued = numbered(tenant.pk)[opened.position :]
    assert [event["data"]["object"]["user_id"] for event in continued] == [late.user_id]
    assert len(snapshot) == 5


def test_a_second_row_for_the_same_user_is_a_duplicate_even_in_an_upsert(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": f"user{number}@example.test", "given_name": "First"} for number in range(CHUNK_ROWS)]
    job = imported(tenant, database_connection, [*rows, {"email": "USER7@example.test", "given_name": "Second"}], upsert=True)
    assert codes(job) == [(CHUNK_ROWS, "DUPLICATED_USER")]
    assert User.objects.of(tenant.pk).get(email="user7@example.test").given_name == "First"


def test_users_log_in_with_imported_hashes_of_other_systems(tenant: Tenant, database_connection: Connection, settings: Any) -> None:
    described = {"algorithm": "sha1", "hash": {"value": "a9993e364706816aba3e25717850c26c9cd0d89d", "encoding": "hex"}}
    job = imported(
        tenant,
        database_connection,
        [
            {"email": "ada@example.test", "custom_password_hash": described},
            {"email": "bad@example.test", "custom_password_hash": {**described, "algorithm": "rot13"}},
            {"email": "both@example.test", "custom_password_hash": described, "password_hash": HASH},
        ],
    )
    assert codes(job) == [(1, "ENUM_MISMATCH"), (2, "NOT_PASSED")]
    assert "a9993e36" not in json.dumps(list(JobError.objects.filter(job=job).values("user", "errors")))
    ada = User.objects.of(tenant.pk).get()
    assert not password_fits(ada, "abd")
    assert password_fits(ada, "abc")
    renewed = PasswordCredential.objects.get(user=ada).password_hash
    assert not renewed.startswith("imported$")
    assert password_fits(ada, "abc")
    assert [event["type"] for event in numbered(tenant.pk)] == ["connection.created", "user.created"]


def test_second_factors_are_stored_encrypted_and_never_shown(tenant: Tenant, database_connection: Connection) -> None:
    factors = [{"totp": {"secret": "JBSWY3DPEHPK3PXP"}}, {"phone": {"value": "+15551234567"}}, {"email": {"value": "a@example.test"}}]
    job = imported(
        tenant,
        database_connection,
        [
            {"email": "ada@example.test", "mfa_factors": factors},
            {"email": "none@example.test", "mfa_factors": []},
            {"email": "many@example.test", "mfa_factors": factors * 4},
            {"email": "odd@example.test", "mfa_factors": [{"totp": {"secret": "JBSWY3DPEHPK3PX1"}}]},
            {"email": "two@example.test", "mfa_factors": [factors[0] | factors[1]]},
        ],
    )
    assert codes(job) == [(1, "ARRAY_LENGTH_SHORT"), (2, "ARRAY_LENGTH_LONG"), (3, "PATTERN"), (4, "MFA_FACTORS_FAILED")]
    kept = list(EnrolledFactor.objects.of(tenant.pk))
    assert [(factor.kind, factor.address) for factor in kept] == [("totp", ""), ("phone", "+15551234567"), ("email", "a@example.test")]
    assert kept[0].secret() == "JBSWY3DPEHPK3PXP"
    # The first login accepts the factor, although its secret, which another system created, is short. The only event of the user
    # reports that the user has factors, and contains no secret.
    ada = User.objects.of(tenant.pk).get(email="ada@example.test")
    now = time.time()
    assert take_totp(ada, totp.code_of("JBSWY3DPEHPK3PXP", totp.step_at(now)), moment=now) == kept[0]
    assert ada.multifactor == ["guardian"]
    made = [event for event in numbered(tenant.pk) if event["type"] == "user.created"]
    assert [event["data"]["object"]["multifactor"] for event in made] == [["guardian"]]
    shown = [*EnrolledFactor.objects.of(tenant.pk).values(), *JobError.objects.filter(job=job).values(), *numbered(tenant.pk)]
    assert "JBSWY3DPEHPK3PX" not in str(shown)


def test_an_id_that_is_linked_to_another_user_is_a_conflict(tenant: Tenant, database_connection: Connection) -> None:
    ada, bob = (
        users.create_user(tenant_id=tenant.pk, connection=database_connection, email=f"{name}@example.test") for name in ("ada", "bob")
    )
    users.link_users(tenant_id=tenant.pk, primary_id=ada.user_id, secondary_id=bob.user_id)
    job = imported(tenant, database_connection, [{"email": "new@example.test", "user_id": bob.identifier}])
    assert codes(job) == [(0, "CONFLICT")]


def test_a_user_of_another_connection_is_not_changed(tenant: Tenant, database_connection: Connection) -> None:
    other = ConnectionFactory.create(tenant_id=tenant.pk, name="other", strategy=database_connection.strategy)
    users.create_user(tenant_id=tenant.pk, connection=other, identifier="x", email="ada@example.test", given_name="Ada")
    job = imported(tenant, database_connection, [{"user_id": "x", "email": "eve@example.test", "given_name": "Eve"}], upsert=True)
    assert codes(job) == [(0, "CONFLICT")]
    assert User.objects.of(tenant.pk).get().given_name == "Ada"


def test_the_report_of_a_row_omits_the_parts_that_cannot_be_stored(tenant: Tenant, database_connection: Connection) -> None:
    rows: list[object] = [
        {"email": "nul\x00@example.test", "na\x00me": "x", "app_metadata": {"a": "\ud800"}},
        {"email": "long@example.test", "user_metadata": {"a": "x" * 5000}, "surplus": 1},
    ]
    job = imported(tenant, database_connection, rows)
    shown = [error.user for error in JobError.objects.filter(job=job)]
    assert shown == [{"email": "nul\ufffd@example.test", "na\ufffdme": "x", "app_metadata": None}, {"email": "long@example.test"}]


def test_a_profile_that_is_too_large_for_an_event_does_not_end_the_job(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": "ada@example.test"}, {"email": "big@example.test", "user_metadata": {"a": "x" * 600_000}}]
    job = imported(tenant, database_connection, [*rows])
    assert (job.status, codes(job)) == ("completed", [(1, "MAX_LENGTH")])
    assert User.objects.of(tenant.pk).get().email == "ada@example.test"


def test_reserved_metadata_and_unsupported_user_names_are_refused(tenant: Tenant, database_connection: Connection) -> None:
    job = imported(tenant, database_connection, [{"email": "a@example.test", "app_metadata": {"blocked": 1}}, {"username": "ada"}])
    assert codes(job) == [(0, "NOT_PASSED"), (1, "NOT_PASSED")]


def test_all_invalid_rows_are_counted_and_only_a_limited_number_is_stored(
    tenant: Tenant, database_connection: Connection, settings: Any
) -> None:
    settings.IMPORT_ERRORS_KEPT = 3
    job = imported(tenant, database_connection, [{"email": number} for number in range(CHUNK_ROWS + 5)])
    assert job.summary["failed"] == CHUNK_ROWS + 5
    assert JobError.objects.filter(job=job).count() == 3
