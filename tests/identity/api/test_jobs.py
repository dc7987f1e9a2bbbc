"""Jobs over the management interface: imports of a multipart file, exports with a download link, progress, errors, and refusals."""

from __future__ import annotations

import csv
import gzip
import io
import json
import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from django.utils import timezone

from identity.models import Connection, Job, JobChunk, Tenant, User
from identity.services.jobs import run_job
from tests.factories.identity import make_user
from tests.factories.models.identity import ConnectionFactory, JobFactory, TenantFactory, UserFactory
from tests.management import Answer, Management, request

BOUNDARY = "----boundary"
TEXT_TYPE = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


@pytest.fixture
def other(committed_db: None) -> Tenant:
    tenant_id = f"t-{secrets.token_hex(6)}"
    return TenantFactory.create(id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")


def part(name: str, content: str | bytes, *, file_name: str | None = None) -> bytes:
    disposition = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name is not None else "")
    kind = "\r\nContent-Type: application/octet-stream" if file_name is not None else ""
    return f"--{BOUNDARY}\r\n{disposition}{kind}\r\n\r\n".encode() + (content if isinstance(content, bytes) else content.encode()) + b"\r\n"


def multipart(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post_import(api: Management, connection_id: str, file: bytes, *, file_name: str = "upload", **members: str) -> Answer:
    parts = [part("users", file, file_name=file_name), part("connection_id", connection_id)]
    body = multipart(*parts, *(part(name, value) for name, value in members.items()))
    return api.call("POST", "jobs/users-imports", body=body, headers=TEXT_TYPE)


def rows(*found: Any) -> bytes:
    return json.dumps(list(found)).encode()


def download(api: Management, location: str) -> Answer:
    parts = urlsplit(location)
    return request("GET", parts.path, parts.query, {"host": parts.netloc}, b"")


def exported(api: Management, body: dict[str, Any]) -> str:
    """Start an export with `body`, run the job, and return the uncompressed text of its file."""
    job = api.post("jobs/users-exports", body).json
    assert run_job(job["id"])
    answer = download(api, api.get(f"jobs/{job['id']}").json["location"])
    assert (answer.status, answer.headers["content-type"]) == (200, "application/gzip")
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert "x-ratelimit-limit" in answer.headers
    return gzip.decompress(answer.body).decode()


def test_an_import_is_accepted_processed_and_reported(api: Management, database_connection: Connection) -> None:
    file = rows({"email": "a@example.test"}, {"email": "b@example.test"}, {"email": 5})
    answer = post_import(api, database_connection.pk, file, upsert="true", external_id="mine", send_completion_email="false")
    assert answer.status == 202
    job = answer.json
    assert job | {"id": "", "created_at": ""} == {
        "id": "",
        "type": "users_import",
        "status": "pending",
        "created_at": "",
        "connection_id": database_connection.pk,
        "connection": "people",
        "external_id": "mine",
        "summary": {"total": 3, "inserted": 0, "updated": 0, "failed": 0},
        "percentage_done": 0,
    }
    assert api.get(f"jobs/{job['id']}/errors").status == 204
    assert run_job(job["id"])
    done = api.get(f"jobs/{job['id']}").json
    assert (done["status"], done["percentage_done"], done["time_left_seconds"]) == ("completed", 100, 0)
    assert done["summary"] == {"total": 3, "inserted": 2, "updated": 0, "failed": 1}
    errors = api.get(f"jobs/{job['id']}/errors")
    assert errors.status == 200
    assert errors.json == [{"user": {"email": 5}, "errors": [{"code": "INVALID_TYPE", "message": "Text is expected.", "path": "email"}]}]


def test_the_parts_may_come_in_any_order_and_the_file_may_have_any_name(api: Management, database_connection: Connection) -> None:
    for file_name in ("blob", "us ers.json", "../x"):
        body = multipart(
            part("upsert", "false"),
            part("external_id", ""),
            part("connection_id", database_connection.pk),
            part("users", b'{"email": "a@example.test"}\n{"email": "b@example.test"}\n', file_name=file_name),
        )
        answer = api.call("POST", "jobs/users-imports", body=body, headers=TEXT_TYPE)
        assert (answer.status, answer.json["summary"]["total"]) == (202, 2)
        assert run_job(answer.json["id"])


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", "The file is empty"),
        (b"nope", "Line 1: expecting value"),
        # The error follows 1,200 valid rows, after the first chunks of rows have been written.
        (b'{"email": "a@example.test"}\n' * 1200 + b"{", "Line 1201: expecting property name"),
        (b'[{"email": "a@example.test"}', "Line 1, row 1 of the array"),
        (b'[{"email": "\xff"}]', "not UTF-8: byte 13"),
    ],
)
def test_an_invalid_file_is_refused_as_a_whole_with_the_position_of_the_error(
    api: Management, database_connection: Connection, file: bytes, said: str
) -> None:
    answer = post_import(api, database_connection.pk, file)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert said in answer.json["message"]
    assert not Job.objects.of(database_connection.tenant_id).exists()
    assert not JobChunk.objects.filter(job__tenant=database_connection.tenant_id).exists()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([("connection_id", "con_0000000000000000", None)], "users"),
        ([("users", "[]", "x")], "connection_id"),
        ([("users", "[]", None), ("connection_id", "con_0000000000000000", None)], "Expected a file"),
        ([("users", "[]", "x"), ("connection_id", "people", None)], "connection_id"),
        ([("users", "[]", "x"), ("connection_id", "con_0000000000000000", None), ("upsert", "yes", None)], "upsert"),
        ([("users", "[]", "x"), ("connection_id", "con_0000000000000000", None), ("more", "yes", None)], "more"),
        ([("users", "[]", "x"), ("users", "[]", "y"), ("connection_id", "con_0000000000000000", None)], "one part of this name"),
        ([("users", "[]", "x"), ("connection_id", "con_0000000000000000", None)], "The connection does not exist."),
    ],
)
def test_invalid_parts_are_refused(api: Management, parts: list[tuple[str, str, str | None]], message: str) -> None:
    body = multipart(*(part(name, content, file_name=file_name) for name, content, file_name in parts))
    answer = api.call("POST", "jobs/users-imports", body=body, headers=TEXT_TYPE)
    assert answer.status == 400
    assert message in answer.json["message"]


def test_an_import_accepts_only_multipart_bodies(api: Management) -> None:
    assert api.post("jobs/users-imports", {"connection_id": "x"}).status == 415
    assert api.call("POST", "jobs/users-imports", body=b"x", headers={"content-type": "multipart/form-data"}).status == 400


def test_users_can_be_imported_only_into_database_connections(api: Management, tenant: Tenant) -> None:
    mail = ConnectionFactory.create(tenant_id=tenant.pk, name="mail", strategy="email")
    answer = post_import(api, mail.pk, b"[]")
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")


def test_a_third_concurrent_import_gets_429(api: Management, database_connection: Connection) -> None:
    answers = [post_import(api, database_connection.pk, b"[]") for _ in range(3)]
    assert [answer.status for answer in answers] == [202, 202, 429]
    assert answers[2].headers["x-ratelimit-remaining"] == "0"
    assert int(answers[2].headers["retry-after"]) >= 1


def test_an_import_may_be_larger_than_other_bodies_but_has_a_limit(
    api: Management, database_connection: Connection, settings: Any, tenant: Tenant
) -> None:
    large = b"\n".join(b'{"email": "user%d@example.test", "user_metadata": {"x": "%s"}}' % (n, b"x" * 1000) for n in range(1500))
    assert len(large) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert post_import(api, database_connection.pk, large).status == 202
    settings.IMPORT_MAX_BYTES = len(large)
    assert post_import(api, database_connection.pk, large).status == 413
    # The service reads a large body only if the token of the request has the scope of the operation.
    reader = Management(tenant, scope="read:users")
    assert post_import(reader, database_connection.pk, large).status == 413
    reader.token = "x"
    assert post_import(reader, database_connection.pk, large).status == 413
    assert post_import(reader, database_connection.pk, b"[]").status == 401


def test_other_operations_keep_the_smaller_limit_of_the_body_size(api: Management) -> None:
    assert api.post("users", {"connection": "people", "name": "x" * 2_000_000}).status == 413


def test_jobs_of_users_can_be_read_only_with_one_of_two_scopes(api: Management, tenant: Tenant) -> None:
    job = api.post("jobs/users-exports", {}).json["id"]
    for scope in ("create:users", "read:users"):
        client = Management(tenant, scope=scope)
        assert client.get(f"jobs/{job}").status == 200
        assert client.get(f"jobs/{job}/errors").status == 204
    for scope in ("update:users", "read:event_streams", "update:event_deliveries"):
        refused = Management(tenant, scope=scope).get(f"jobs/{job}")
        assert (refused.status, refused.json["errorCode"]) == (403, "insufficient_scope")
        assert Management(tenant, scope=scope).get(f"jobs/{job}/errors").status == 403
    assert refused.json["message"] == "Insufficient scope, expected any of: create:users,read:users"


@pytest.mark.parametrize(
    ("job_type", "readers"),
    [
        (Job.Type.STREAM_SYNCHRONIZATION, ("read:event_streams", "update:event_streams")),
        (Job.Type.STREAM_RECONCILIATION, ("read:event_streams", "update:event_streams")),
        (Job.Type.EVENT_REDELIVERY, ("read:event_deliveries", "update:event_deliveries", "read:event_streams")),
    ],
)
def test_jobs_of_streams_can_be_read_only_with_a_scope_of_their_type(tenant: Tenant, job_type: Job.Type, readers: tuple[str, ...]) -> None:
    job = JobFactory.create(tenant_id=tenant.pk, type=job_type)
    for scope in readers:
        client = Management(tenant, scope=scope)
        assert (client.get(f"jobs/{job.pk}").status, client.get(f"jobs/{job.pk}/errors").status) == (200, 204)
    for scope in ("read:users", "create:users", "read:events"):
        assert Management(tenant, scope=scope).get(f"jobs/{job.pk}").status == 403
    assert Management(tenant, scope="create:users").post("jobs/users-exports", {}).status == 403


def test_ids_of_the_wrong_format_get_400_and_unknown_ids_get_404(api: Management) -> None:
    for tail in ("", "/errors"):
        assert api.get(f"jobs/nope{tail}").json["errorCode"] == "invalid_uri"
        assert api.get(f"jobs/job_0000000000000000{tail}").status == 404


def test_jobs_of_every_type_can_be_read_except_bulk_acts_of_the_admin(api: Management, tenant: Tenant) -> None:
    named = {"label": "Block selected users", "model": "identity.user"}
    by_staff = Job.objects.of(tenant.pk).create(tenant=tenant, type=Job.Type.BULK_ACTION, parameters=named)
    assert api.get(f"jobs/{by_staff.pk}").status == 404
    for job_type in set(Job.Type.values) - {Job.Type.BULK_ACTION}:
        job = Job.objects.of(tenant.pk).create(tenant=tenant, type=job_type)
        answer = api.get(f"jobs/{job.pk}")
        assert (answer.status, answer.json["type"], answer.json["percentage_done"]) == (200, job_type, 0)


def test_the_reason_is_shown_if_a_job_failed_as_a_whole(api: Management, database_connection: Connection) -> None:
    job = post_import(api, database_connection.pk, rows({"email": 1})).json["id"]
    Job.objects.of(database_connection.tenant_id).filter(pk=job).update(started_at=timezone.now() - timedelta(days=1))
    assert run_job(job)
    answer = api.get(f"jobs/{job}/errors")
    assert answer.status == 200
    assert answer.json["status_details"] == "The job took longer than 7200 seconds."
    assert set(answer.json) == {"id", "type", "status", "created_at", "connection_id", "status_details"}


def test_an_export_has_every_user_as_one_line_of_json(api: Management, database_connection: Connection) -> None:
    for number in range(3):
        make_user(connection=database_connection, email=f"user{number}@example.test", user_metadata={"n": number})
    lines = [json.loads(line) for line in exported(api, {}).splitlines()]
    assert [line["email"] for line in lines] == [f"user{number}@example.test" for number in range(3)]
    assert lines == [api.get(f"users/{line['user_id'].replace('|', '%7C')}").json for line in lines]


def test_an_export_of_many_pages_is_one_file(api: Management, database_connection: Connection) -> None:
    found = [User(tenant_id=database_connection.tenant_id, connection=database_connection, user_id=f"database|{n}") for n in range(1203)]
    User.objects.of(database_connection.tenant_id).bulk_create(found)
    text = exported(api, {"fields": [{"name": "user_id", "export_as": "id"}, {"name": "email"}]})
    assert [json.loads(line) for line in text.splitlines()] == [{"id": f"database|{n}"} for n in range(1203)]


def test_a_request_can_limit_an_export_to_one_connection_and_a_number_of_users(
    api: Management, tenant: Tenant, database_connection: Connection
) -> None:
    other = ConnectionFactory.create(tenant_id=tenant.pk, name="other", strategy=database_connection.strategy)
    for connection in (database_connection, other):
        for number in range(3):
            make_user(connection=connection, email=f"{connection.name}{number}@example.test")
    text = exported(api, {"connection_id": other.pk, "limit": 2, "fields": [{"name": "email"}]})
    assert [json.loads(line)["email"] for line in text.splitlines()] == ["other0@example.test", "other1@example.test"]


def test_an_exported_csv_file_has_the_requested_columns_and_no_formula(api: Management, database_connection: Connection) -> None:
    make_user(
        connection=database_connection,
        email="ada@example.test",
        name='=HYPERLINK("http://evil.example","x")',
        nickname='Ada, "the first"\nof her name',
        phone_number="+15551234567",
        app_metadata={"plan": {"name": "full", "seats": 3}},
    )
    fields = [
        {"name": "email"},
        {"name": "name"},
        {"name": "nickname"},
        {"name": "phone_number"},
        {"name": "identities[0].connection", "export_as": "provider"},
        {"name": "app_metadata.plan.seats"},
        {"name": "app_metadata.plan", "export_as": "plan"},
        {"name": "user_metadata.none", "export_as": "none"},
        {"name": "email_verified"},
    ]
    table = list(csv.reader(io.StringIO(exported(api, {"format": "csv", "fields": fields}), newline="")))
    assert table == [
        ["email", "name", "nickname", "phone_number", "provider", "app_metadata.plan.seats", "plan", "none", "email_verified"],
        [
            "ada@example.test",
            '\'=HYPERLINK("http://evil.example","x")',
            'Ada, "the first"\nof her name',
            "+15551234567",
            "people",
            "3",
            '{"name":"full","seats":3}',
            "",
            "false",
        ],
    ]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"format": "csv", "fields": [{"name": "app_metadata"}]}, "fields[0]"),
        ({"format": "csv", "fields": [{"name": f"app_metadata.f{n}"} for n in range(31)]}, "fields"),
        ({"fields": [{"name": "email"}, {"name": "password"}]}, "fields[1]"),
        ({"fields": [{"name": "identities[0"}]}, "fields[0]"),
        ({"fields": [{"name": "name"}, {"name": "email", "export_as": "name"}]}, "fields[1]"),
        ({"fields": [{"export_as": "x"}]}, "fields[0].name"),
        ({"format": "xml"}, "format"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_refused_export_shows_which_member_is_invalid(api: Management, body: dict[str, Any], place: str) -> None:
    answer = api.post("jobs/users-exports", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert answer.json["message"].endswith(f"on property {place}")


def test_an_export_contains_the_cursor_that_was_taken_before_its_first_row_was_read(
    api: Management, database_connection: Connection
) -> None:
    job = api.post("jobs/users-exports", {}).json
    assert job["events_cursor"]
    UserFactory.create(tenant_id=database_connection.tenant_id, connection=database_connection, email="late@example.test")
    assert run_job(job["id"])
    assert api.get(f"jobs/{job['id']}").json["events_cursor"] == job["events_cursor"]


def test_a_download_link_expires_but_each_read_of_the_job_returns_a_new_link(api: Management, tenant: Tenant) -> None:
    job = api.post("jobs/users-exports", {}).json
    assert "location" not in job
    assert run_job(job["id"])
    with time_machine.travel(timezone.now(), tick=False) as clock:
        first = api.get(f"jobs/{job['id']}").json["location"]
        clock.shift(59)
        assert download(api, first).status == 200
        second = api.get(f"jobs/{job['id']}").json["location"]
        assert second != first
        clock.shift(3)
        assert download(api, first).status == 403
        assert download(api, second).status == 200


def test_a_download_link_is_valid_only_for_its_tenant_and_its_file(api: Management, tenant: Tenant, other: Tenant) -> None:
    jobs = [api.post("jobs/users-exports", {}).json["id"] for _ in range(2)]
    for job in jobs:
        assert run_job(job)
    location = api.get(f"jobs/{jobs[0]}").json["location"]
    assert download(api, location).status == 200
    assert download(api, location.replace(tenant.pk, other.pk)).status == 404
    assert download(api, location.replace(jobs[0], jobs[1])).status == 404
    assert download(api, location.replace(".json.gz", ".csv.gz")).status == 404
    assert download(api, location[:-3]).status == 404
    assert download(api, location.partition("?")[0]).status == 404
    foreign = Management(other)
    assert foreign.get(f"jobs/{jobs[0]}").status == 404
    assert foreign.get(f"jobs/{jobs[0]}/errors").status == 404
