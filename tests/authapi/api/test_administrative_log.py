"""The administrative log: changes by clients and staff are in `GET /logs`, without secrets."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection as database
from django.db import transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from authapi.edge.rate_figures import FAILED_OPERATIONS
from authapi.expiry import drop_ended
from authapi.logs.merged_log import oldest_writer, settled_until
from authapi.models import AdministrativeLine
from authapi.services.staff_lines import PLATFORM_STAFF
from foundation.acting import Act, Actor, acting
from identity.audit.entries import record
from identity.models import AuditEntry, Connection, Staff, Tenant, User
from identity.services import organizations, users
from identity.services.tenants import create_tenant
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.authapi import AdministrativeLineFactory
from tests.factories.sign_ins import make_sign_in
from tests.management import Management, segment

PASSWORD = "Correct-horse-9-battery"


def lines(api: Management, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("logs", query)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json
    return found


def only(api: Management, q: str) -> dict[str, Any]:
    (line,) = lines(api, q=q)
    return line


def stored(tenant: Tenant) -> list[AdministrativeLine]:
    return list(AdministrativeLine.objects.of(tenant.pk).order_by("created_at", "pk"))


def settle(tenant: Tenant, *, seconds: int = 30) -> None:
    """Make every line older, so that a client that follows `GET /logs` gets the lines immediately."""
    for row in stored(tenant):
        AdministrativeLine.objects.of(tenant.pk).filter(pk=row.pk).update(created_at=row.created_at - timedelta(seconds=seconds))


def jti_of(api: Management) -> str:
    payload = api.token.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["jti"])


# Failed requests.


def test_a_failed_write_is_logged_with_its_error_and_without_its_body(api: Management, ada: User) -> None:
    answer = api.patch(f"users/{segment(ada.user_id)}", {"passphrase": "hunter2", "given_name": "hunter2", "odd": "hunter2"})
    assert answer.status == 400

    line = only(api, "type:fapi")

    assert line["description"] == answer.json["message"]
    assert line["details"]["response"] == {"statusCode": 400}
    assert line["user_id"] == ada.user_id
    assert "body" not in line["details"]["request"]
    assert "hunter2" not in json.dumps(line)


def test_a_write_without_the_scope_is_logged_and_changes_nothing(tenant: Tenant, ada: User) -> None:
    reader = Management(tenant, scope="read:logs")

    assert reader.delete(f"users/{segment(ada.user_id)}").status == 403

    line = only(reader, "type:fapi")
    assert (line["client_id"], line["details"]["response"]["statusCode"]) == (reader.client.client_id, 403)
    assert "scope" not in line
    assert User.objects.of(tenant.pk).filter(pk=ada.pk).exists()


def test_a_request_without_a_valid_token_is_not_logged(api: Management, tenant: Tenant) -> None:
    api.token = "nonsense"
    assert api.post("roles", {"name": "writer"}).status == 401
    assert stored(tenant) == []


def test_a_read_is_not_logged(api: Management, tenant: Tenant, ada: User) -> None:
    assert api.get("users").status == 200
    assert api.get("users/database%7Cffffffffffffffffffffffff").status == 404
    assert stored(tenant) == []


def test_a_client_cannot_fill_the_log_with_failed_requests(api: Management, tenant: Tenant, settings: Settings) -> None:
    settings.RATE_LIMITS_ENABLED = False
    for _ in range(FAILED_OPERATIONS.size + 20):
        assert api.post("roles", {}).status == 400

    # The rate allows one more line every five seconds while the test runs.
    assert FAILED_OPERATIONS.size <= len(stored(tenant)) < FAILED_OPERATIONS.size + 15
    # Failures of another client and successes of the first client are still logged.
    other = Management(tenant)
    assert other.post("roles", {}).status == 400
    assert api.post("roles", {"name": "writer"}).status == 200
    assert {line.client_id for line in stored(tenant)} == {api.client.client_id, other.client.client_id}
    assert only(api, "type:sapi")["description"] == "Create a role"


def test_a_request_over_the_rate_limit_is_not_logged(api: Management, tenant: Tenant, settings: Settings) -> None:
    settings.RATE_LIMIT_PER_SECOND, settings.RATE_LIMIT_BURST = 1, 1
    answers = [api.post("roles", {"name": f"role {number}"}).status for number in range(4)]
    assert 429 in answers
    assert len(stored(tenant)) == len(answers) - answers.count(429)


@contextmanager
def judged_at_commit(table: str, verdict: str) -> Iterator[None]:
    """Let the database refuse some commits.

    A commit is refused if the transaction has inserted a row (`NEW`) into `table` for which `verdict` is true.
    """
    function = f"""
    CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF {verdict} THEN RAISE EXCEPTION 'refused'; END IF; RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER judge AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION judge();
    """
    with database.cursor() as cursor:
        cursor.execute(function)
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute("DROP FUNCTION judge CASCADE")


def test_a_write_that_fails_at_its_commit_is_logged_only_as_a_failure(api: Management, tenant: Tenant) -> None:
    # The transaction already contains the line of the success, which the rollback removes.
    with judged_at_commit("identity_role", "true"):
        assert api.post("roles", {"name": "writer"}).status == 500
    assert [line.type for line in stored(tenant)] == ["fapi"]
    assert api.get("roles").json == []


# Contents of a line.


def test_a_write_is_logged_as_one_line_with_its_request_and_answer(api: Management, tenant: Tenant) -> None:
    headers = {"x-correlation-id": "deploy-7", "user-agent": "Deploy/1.0"}
    answer = api.call("POST", "roles", body={"name": "writer"}, query={"note": "a"}, headers=headers)
    assert answer.status == 200

    line = only(api, "type:sapi")

    assert line == {
        "log_id": line["log_id"],
        "date": line["date"],
        "type": "sapi",
        "description": "Create a role",
        "client_id": api.client.client_id,
        "client_name": "Tests",
        "ip": "127.0.0.1",
        "user_agent": "Deploy/1.0",
        "scope": "create:roles",
        "details": {
            "request": {
                "method": "post",
                "path": "/api/v2/roles",
                "query": {"note": "a"},
                "channel": "api",
                "auth": {"credentials": {"jti": jti_of(api), "scopes": ["create:roles"]}, "strategy": "jwt"},
                "correlation_id": "deploy-7",
                "body": {"name": "writer"},
            },
            "response": {"statusCode": 200},
        },
    }
    assert api.get(f"logs/{line['log_id']}").json == line


def test_a_correlation_id_longer_than_64_characters_is_left_out(api: Management) -> None:
    assert api.call("POST", "roles", body={"name": "writer"}, headers={"x-correlation-id": "x" * 65}).status == 200
    assert "correlation_id" not in only(api, "type:sapi")["details"]["request"]


@pytest.mark.parametrize(
    ("path", "body", "secret"),
    [
        ("users", {"connection": "people", "email": "eve@example.test", "password": PASSWORD}, PASSWORD),
        (
            "users",
            {"connection": "people", "email": "eve@example.test", "password": PASSWORD, "app_metadata": {"api_key": "s3cr3t-1"}},
            "s3cr3t-1",
        ),
        (
            "users",
            {
                "connection": "people",
                "email": "eve@example.test",
                "password": PASSWORD,
                "user_metadata": {"note": "eyJhbGciOiJub25lIn0.e30."},
            },
            "eyJhbGciOi",
        ),
        (
            "actions/actions",
            {
                "name": "scim",
                "supported_triggers": [{"id": "event-stream", "version": "v1"}],
                "template": "scim-user-provisioning",
                "secrets": [{"name": "SCIM", "value": "s3cr3t-4"}],
            },
            "s3cr3t-4",
        ),
        (
            "connections",
            {"name": "idp", "strategy": "oidc", "options": {"client_id": "a", "client_secret": "s3cr3t-2", "odd": "s3cr3t-2"}},
            "s3cr3t-2",
        ),
        ("clients", {"name": "App", "client_metadata": {"hook": "https://user:s3cr3t-3@hooks.example.test/"}}, "s3cr3t-3"),
    ],
)
def test_a_secret_in_a_request_body_is_not_logged(
    api: Management, tenant: Tenant, database_connection: Connection, path: str, body: dict[str, Any], secret: str
) -> None:
    assert api.post(path, body).status == 201
    (line,) = stored(tenant)
    assert "(hidden)" in json.dumps(line.details)
    assert secret not in json.dumps(line.details)


def test_a_secret_in_an_answer_is_not_logged(api: Management, tenant: Tenant) -> None:
    made = api.post("clients", {"name": "App"}).json
    rotated = api.post(f"clients/{made['client_id']}/rotate-secret").json
    text = json.dumps([line.details for line in stored(tenant)])
    assert made["client_secret"] not in text
    assert rotated["client_secret"] not in text


def test_a_token_in_a_path_or_a_query_is_not_logged(api: Management, tenant: Tenant) -> None:
    token = "v1.M" + "a" * 60
    assert api.delete(f"refresh-tokens/{'b' * 64}").status in (400, 404)
    assert api.call("DELETE", "clients/nobody", query={"access_token": token, "note": f"Bearer {token}"}).status == 204
    assert api.patch(f"users/{'c' * 64}", {"name": "Ada"}).status in (400, 404)
    assert api.call("DELETE", "user-blocks", query={"identifier": "d" * 64, "e" * 64: "1"}).status in (204, 404)
    assert api.post("clients", {"name": "App", "client_metadata": {"upstream": "f" * 64}}).status == 201
    lines = stored(tenant)
    text = json.dumps([[line.details, line.user_id, line.description] for line in lines])
    assert len(lines) >= 4
    assert [letter for letter in "bcdef" if letter * 64 in text] == []
    assert token not in text


@pytest.mark.parametrize("value", ["eyJhbGciOiJub25lIn0.e30.c2VjcmV0", "s" * 64, "Bearer s3cr3t-token"])
def test_a_refused_value_that_looks_like_a_token_is_not_logged(api: Management, value: str) -> None:
    answer = api.post("clients", {"name": "App", "app_type": value})
    assert answer.status == 400
    assert value in answer.json["message"]

    line = only(api, "type:fapi")
    assert value.removeprefix("Bearer ") not in json.dumps(line)
    assert "(hidden)" in line["description"]


def test_a_large_body_is_logged_as_the_names_of_its_members(api: Management, database_connection: Connection) -> None:
    body = {"connection": "people", "email": "eve@example.test", "password": PASSWORD, "user_metadata": {"note": "a long note " * 1_000}}
    assert api.post("users", body).status == 201
    kept = only(api, "type:sapi")["details"]["request"]["body"]
    assert set(kept) == set(body)
    assert all(value.startswith("(not kept: ") for value in kept.values())


# The user in an administrative line.


def test_writes_about_a_user_are_logged_with_that_user(api: Management, database_connection: Connection, ada: User) -> None:
    made = api.post("users", {"connection": "people", "email": "eve@example.test", "password": PASSWORD}).json["user_id"]
    assert api.patch(f"users/{segment(made)}", {"given_name": "Eve"}).status == 200
    assert api.delete(f"users/{segment(ada.user_id)}").status == 204

    of_eve = api.get(f"users/{segment(made)}/logs", {"include_totals": "true", "page": 0, "per_page": 50}).json
    assert [line["description"] for line in of_eve["logs"]] == ["Update a user", "Create a user"]
    assert of_eve["total"] == 2
    assert {line["type"] for line in lines(api, q=f'user_id:"{ada.user_id}"')} == {"sapi", "sdu"}


def test_deleting_an_unknown_user_is_not_logged_as_a_deleted_user(api: Management, tenant: Tenant) -> None:
    assert api.delete("users/database%7Cffffffffffffffffffffffff").status == 204
    assert [line.type for line in stored(tenant)] == ["sapi"]


# The line is stored in the transaction of the write.


NO_LINE = "NOT EXISTS (SELECT FROM authapi_administrativeline WHERE tenant_id = NEW.tenant_id AND type = 'sapi')"


def test_the_line_is_stored_in_the_same_commit_as_the_write(tenant: Tenant, api: Management) -> None:
    """The line exists even if the process is killed directly after the commit of the write."""
    with judged_at_commit("identity_role", NO_LINE):
        assert api.post("roles", {"name": "writer"}).status == 200
    assert [line.description for line in stored(tenant)] == ["Create a role"]


def test_the_line_of_a_setting_is_stored_in_the_same_commit_as_the_setting(tenant: Tenant, api: Management) -> None:
    authorization = {"method": "bearer", "token": "s3cr3t"}
    configuration = {"webhook_endpoint": "https://hooks.example.test/in?token=s3cr3t", "webhook_authorization": authorization}
    destination = {"type": "webhook", "configuration": configuration}
    body = {"name": "hooks", "subscriptions": [{"event_type": "user.created"}], "destination": destination}

    with judged_at_commit("events_eventstream", NO_LINE):
        answer = api.post("event-streams", body)
    assert answer.status == 201, answer.body

    (line,) = stored(tenant)
    assert line.description == "Create an event stream"
    assert "s3cr3t" not in json.dumps(line.details)


def test_a_write_that_changes_nothing_is_logged_too(api: Management, ada: User) -> None:
    assert api.patch(f"users/{segment(ada.user_id)}", {}).status == 200
    assert only(api, "type:sapi")["user_id"] == ada.user_id


# Staff.


def test_changes_by_staff_of_the_tenant_are_logged_with_a_name_but_without_values(tenant: Tenant, api: Management, ada: User) -> None:
    staff = new_staff(tenant)
    organization = organizations.create_organization(tenant_id=tenant.pk, name="acme")
    browser = browser_of(staff)
    place = reverse("admin:identity_organization_change", args=[organization.pk])
    page = browser.get(place)
    form = {
        **page.context["adminform"].form.initial,
        "display_name": "Acme of the hills",
        "name": "acme",
        "metadata": "{}",
        "branding": "{}",
    }
    management_forms = {
        f"{formset.formset.prefix}-{name}": value
        for formset in page.context["inline_admin_formsets"]
        for name, value in formset.formset.management_form.initial.items()
    }
    sent = {name: value for name, value in {**form, **management_forms}.items() if value is not None}
    answer = browser.post(place, sent, headers={"user-agent": "Browser/1.0"})
    assert answer.status_code == 302, answer.content[-3000:]

    line = only(api, f'user_name:"{staff.email}" AND description:"Update an organization"')

    assert line["type"] == "sapi"
    assert line["user_agent"] == "Browser/1.0"
    assert line["details"]["request"]["auth"] == {"user": {"name": staff.email, "email": staff.email}, "strategy": "session"}
    assert line["details"]["request"]["method"] == "post"
    assert line["details"]["object"] == {"type": "organization", "id": organization.pk, "name": "acme"}
    assert line["details"]["changed"] == ["display_name"]
    assert "hills" not in json.dumps(line)


def acts(staff: Staff) -> Act:
    return Act(Actor("staff", str(staff.pk), staff.email), ip="192.0.2.9", user_agent="Browser/9", reason="unpaid")


def test_changes_by_platform_staff_are_logged_without_a_name(tenant: Tenant, api: Management, ada: User) -> None:
    operator = new_staff(None)
    with acting(acts(operator)):
        users.update_user(tenant_id=tenant.pk, user_id=ada.user_id, changes={"blocked": True})

    line = only(api, "type:sapi")

    assert (line["user_name"], line["user_id"]) == (PLATFORM_STAFF, ada.user_id)
    assert not {"ip", "user_agent"} & set(line)
    assert not any(told in json.dumps(line) for told in (operator.email, "192.0.2.9", "Browser/9", "unpaid"))
    for q in (f'user_name:"{operator.email}"', "ip:192.0.2.9", 'user_agent:"Browser/9"'):
        assert lines(api, q=q) == []


def test_staff_of_another_tenant_are_not_named(tenant: Tenant, api: Management, ada: User) -> None:
    elsewhere = new_staff(None)
    with acting(Act(Actor("staff", "no number", elsewhere.email))):
        users.update_user(tenant_id=tenant.pk, user_id=ada.user_id, changes={"blocked": True})
    assert only(api, "type:sapi")["user_name"] == PLATFORM_STAFF


def test_a_user_whom_staff_delete_is_logged_as_deleted(tenant: Tenant, api: Management, ada: User) -> None:
    staff = new_staff(tenant)
    with acting(acts(staff)):
        users.delete_user(tenant_id=tenant.pk, user_id=ada.user_id)
    found = lines(api, q=f'user_id:"{ada.user_id}" AND user_name:"{staff.email}"')
    assert {"sapi", "sdu"} <= {line["type"] for line in found}
    assert {line["description"] for line in found if line["type"] == "sdu"} == {"Delete a user"}


def test_a_change_by_staff_that_is_rolled_back_leaves_no_line(tenant: Tenant, ada: User) -> None:
    with transaction.atomic(), acting(acts(new_staff(tenant))):
        users.update_user(tenant_id=tenant.pk, user_id=ada.user_id, changes={"blocked": True})
        transaction.set_rollback(True)
    assert stored(tenant) == []


def test_an_act_that_changes_no_row_is_logged_with_its_name(tenant: Tenant, api: Management, ada: User) -> None:
    staff = new_staff(tenant)
    with acting(acts(staff)):
        record("Dry run for a user", about=ada)
    line = only(api, 'description:"Dry run for a user"')
    assert (line["user_id"], line["details"]["reason"]) == (ada.user_id, "unpaid")


def test_an_act_without_a_tenant_and_a_change_by_a_command_are_not_logged(tenant: Tenant, ada: User) -> None:
    with acting(acts(new_staff(None))):
        record("Rotated the keys of the platform")
    with acting(Act(Actor("command", "root", "root@host"))):
        users.update_user(tenant_id=tenant.pk, user_id=ada.user_id, changes={"blocked": True})
    assert stored(tenant) == []
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, actor_kind="command").exists()


# Lists.


def test_one_list_contains_each_administrative_line_and_each_sign_in_line_once(api: Management, tenant: Tenant, ada: User) -> None:
    moment = timezone.now().replace(microsecond=0) - timedelta(minutes=5)
    expected: list[tuple[Any, str]] = []
    for number in range(30):
        # Three lines have the same timestamp.
        at = moment + timedelta(seconds=number // 3)
        pk = make_sign_in(ada, created_at=at).pk if number % 2 else make_line(tenant, created_at=at).pk
        expected.append((at, pk))
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM unnest(%s::timestamptz[], %s::varchar[]) AS line(at, id) ORDER BY at, id",
            [[at for at, _ in expected], [pk for _, pk in expected]],
        )
        oldest_first = [row[0] for row in cursor.fetchall()]

    followed: list[str] = []
    while page := lines(api, take=7, **({"from": followed[-1]} if followed else {})):
        followed += [line["log_id"] for line in page]
    paged = [line["log_id"] for page in range(5) for line in lines(api, page=page, per_page=7)]

    assert followed == oldest_first
    assert paged == oldest_first[::-1]
    totals = api.get("logs", {"include_totals": "true", "page": 4, "per_page": 7}).json
    assert (totals["total"], totals["length"], totals["start"]) == (30, 2, 28)
    assert [line["log_id"] for line in lines(api, sort="date:1", per_page=30)] == oldest_first


def make_line(tenant: Tenant, **changes: Any) -> AdministrativeLine:
    created_at = changes.pop("created_at", timezone.now() - timedelta(seconds=10))
    values = {"description": "Update a client", "user_name": "", "ip": None} | changes
    row = AdministrativeLineFactory.create(tenant_id=tenant.pk, **values)
    AdministrativeLine.objects.of(tenant.pk).filter(pk=row.pk).update(created_at=created_at)
    row.refresh_from_db()
    return row


NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        (None, timedelta(seconds=5)),
        (timedelta(seconds=1), timedelta(seconds=6)),
        (timedelta(minutes=2), timedelta(minutes=2, seconds=5)),
        # Clients that follow `GET /logs` get a line at most ten minutes late, even if a transaction stays open for longer.
        (timedelta(days=1), timedelta(minutes=10)),
    ],
)
def test_a_reader_of_the_log_waits_for_the_oldest_writing_transaction(begun: timedelta | None, expected: timedelta) -> None:
    assert settled_until(NOW, None if begun is None else NOW - begun) == NOW - expected


def test_the_start_of_the_oldest_open_writing_transaction_is_found(tenant: Tenant) -> None:
    other = database.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT now()")
            begun = cursor.fetchone()[0]
            cursor.execute("CREATE TEMPORARY TABLE writing ()")
            # Threads of the service may also write, and their transactions may be older.
            assert (oldest_writer() or timezone.now()) <= begun
            cursor.execute("ROLLBACK")
    finally:
        other.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type:sapi", {"client", "staff"}),
        ("type:(sapi OR fapi)", {"client", "staff", "failed"}),
        ("type:fapi OR type:fp", {"failed", "login"}),
        ("NOT type:sapi", {"failed", "login"}),
        ("type:s*", {"client", "staff"}),
        ("type:f*", {"failed", "login"}),
        ("client_id:app", {"client"}),
        ('description:"Update a client" AND NOT client_id:app', {"staff"}),
        ('user_name:"staff@example.test"', {"staff"}),
        ("ip:192.0.2.44", {"failed"}),
        ("date:[2020-01-01 TO 2020-01-01]", {"failed"}),
        ("type:sapi AND type:fp", set()),
    ],
)
def test_a_query_searches_administrative_and_sign_in_lines(
    api: Management, tenant: Tenant, ada: User, query: str, expected: set[str]
) -> None:
    noon = timezone.now().replace(year=2020, month=1, day=1, hour=12)
    made = {
        "client": make_line(tenant, client_id="app").pk,
        "staff": make_line(tenant, user_name="staff@example.test").pk,
        "failed": make_line(tenant, type="fapi", ip="192.0.2.44", description="No.", created_at=noon).pk,
        "login": make_sign_in(ada).pk,
    }
    assert {line["log_id"] for line in lines(api, q=query)} == {made[name] for name in expected}
    assert only(api, f"log_id:{made['staff']}")["log_id"] == made["staff"]


def test_lines_of_another_tenant_are_not_found(api: Management, tenant: Tenant, other: Tenant) -> None:
    foreign = make_line(other)
    assert lines(api, q=f"log_id:{foreign.pk}") == []
    assert api.get(f"logs/{foreign.pk}").status == 404
    # If `from` is the id of a line of another tenant, the list is the same as for a deleted id: it starts at the oldest line of the
    # requesting tenant. So the answer does not reveal that the line exists at another tenant.
    assert foreign.pk not in [line["log_id"] for line in api.get("logs", {"from": foreign.pk}).json]
    assert lines(api) == []


@pytest.fixture
def other(committed_db: None) -> Tenant:
    from tests.config.two_tenants import make_other_tenant

    return make_other_tenant()


def test_retention_deletes_administrative_lines_together_with_lines_of_the_sign_in_log(tenant: Tenant, settings: Settings) -> None:
    settings.SIGN_IN_LOG_DAYS = 10
    old = make_line(tenant, created_at=timezone.now() - timedelta(days=11))
    kept = make_line(tenant, created_at=timezone.now() - timedelta(days=9))
    drop_ended()
    assert [line.pk for line in stored(tenant)] == [kept.pk]
    assert old.pk != kept.pk


FILL = """
INSERT INTO {table} (id, tenant_id, type, is_success, description, user_id, user_name, client_id, client_name, connection, ip,
    user_agent, details, created_at{more})
SELECT 'log_{mark}' || left(md5(%(tenant)s), 10) || lpad(i::text, 11, '0'), %(tenant)s,
    CASE WHEN i = 1 THEN '{rare}' ELSE '{usual}' END, true, 'Update a user',
    'database|' || i %% 5000, CASE WHEN i = 2 THEN 'staff@example.test' ELSE '' END, 'client' || i %% 50, '', '', NULL, '', '{{}}',
    now() - i * interval '1 second'{value}
FROM generate_series(1, %(count)s) i
"""
COUNT = 40_000


@pytest.fixture(scope="module")
def long_log(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Tenant:
    """A tenant with many administrative and sign-in lines. Lines of a second tenant are between them."""
    with django_db_blocker.unblock(), database.cursor() as cursor:
        for name in (f"t-{secrets.token_hex(6)}" for _ in range(2)):
            tenant = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
            for table, mark, rare, usual, more, value in (
                ("authapi_signin", "a", "fu", "s", "", ""),
                ("authapi_administrativeline", "b", "fapi", "sapi", ", scope", ", ''"),
            ):
                statement = FILL.format(table=table, mark=mark, rare=rare, usual=usual, more=more, value=value)
                cursor.execute(statement, {"tenant": name, "count": COUNT})
        cursor.execute("ANALYZE authapi_signin, authapi_administrativeline")
    return tenant


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"take": 50},
        {"take": 50, "from": 20_000},
        {"q": "type:sapi"},
        {"q": "type:fapi"},
        {"q": "type:fapi", "sort": "date:1"},
        {"q": 'user_id:"database|77"'},
        {"q": 'user_name:"staff@example.test" AND type:sapi'},
        {"q": "client_id:client7 AND type:sapi"},
        {"q": "type:sapi AND date:[2020-01-01 TO *]"},
    ],
)
def test_a_page_of_a_long_log_reads_only_the_rows_that_it_shows(committed_db: None, long_log: Tenant, query: dict[str, Any]) -> None:
    api = Management(long_log)
    if "from" in query:
        digest = hashlib.md5(long_log.pk.encode(), usedforsecurity=False).hexdigest()
        query = {**query, "from": f"log_b{digest[:10]}{query['from']:011}"}
    with CaptureQueriesContext(database) as captured:
        assert lines(api, **query)
    statements = [
        found["sql"] for found in captured.captured_queries if "authapi_signin" in found["sql"] or "administrativeline" in found["sql"]
    ]
    assert statements
    for sql in statements:
        for node in nodes_of(plan_of(sql)):
            assert rows_read(node) <= 250, (query, node["Node Type"], sql)


def plan_of(sql: str) -> dict[str, Any]:
    with database.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        found: dict[str, Any] = cursor.fetchone()[0][0]["Plan"]
    return found


def nodes_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes_of(child))]


def rows_read(node: dict[str, Any]) -> int:
    return int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
