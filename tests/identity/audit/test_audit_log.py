"""The audit log: the contents of an entry, hidden values, and the triggers of the database that protect entries."""

from __future__ import annotations

import csv
import io
import json
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from foundation.acting import Act, Actor, act_of_command, acting, said
from foundation.database.keyset_pages import read_place
from foundation.secrets.hidden_values import HIDDEN, LONGEST, differing, is_secret, shown
from identity.audit.browsing import Question, browse, exported
from identity.audit.entries import record
from identity.audit.retention import prune_audit_log
from identity.imports.imports import start_import
from identity.models import AuditEntry, Connection, Tenant, User
from identity.services.jobs import run_job

ADA = Actor("staff", "7", "ada@example.test")


def entry(tenant: Tenant, *, days_ago: float = 0, **values: Any) -> AuditEntry:
    made = AuditEntry(tenant_id=tenant.pk, act_id="5e7ab5a1-0000-4000-8000-000000000000", kind="act", actor_kind="staff", actor_name="ada")
    made.at = timezone.now() - timedelta(days=days_ago)
    for name, value in values.items():
        setattr(made, name, value)
    made.save()
    return made


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://hooks.example.test/in?token=abc", "https://hooks.example.test/in?(hidden)"),
        ("https://user:abc@hooks.example.test/in", "https://(hidden)@hooks.example.test/in"),
        ("https://hooks.example.test/in#part", "https://hooks.example.test/in#part"),
        ("What is at https://hooks.example.test/?a=b", "What is at https://hooks.example.test/?a=b"),
        ({"webhook_endpoint": "https://h.example.test/?t=abc"}, {"webhook_endpoint": "https://h.example.test/?(hidden)"}),
        (["https://a.example.test/?t=abc"], ["https://a.example.test/?(hidden)"]),
    ],
)
def test_a_url_is_recorded_without_its_credentials_and_its_query(value: Any, expected: Any) -> None:
    assert shown("destination", value) == expected
    assert shown("callbacks", value) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE identity_auditentry SET actor_name = 'eve' WHERE id = %s",
        "DELETE FROM identity_auditentry WHERE id = %s",
        "TRUNCATE identity_auditentry",
    ],
)
def test_the_database_refuses_to_change_or_delete_an_entry(tenant: Tenant, statement: str) -> None:
    kept = entry(tenant, days_ago=1000)

    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement, [kept.pk] if "%s" in statement else None)

    assert AuditEntry.objects.get(pk=kept.pk).actor_name == "ada"


def test_pruning_with_a_forged_time_deletes_no_entry_of_the_last_thirty_days(tenant: Tenant) -> None:
    kept = entry(tenant, days_ago=29)

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('identity.audit_prune_before', '2999-01-01', true)")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute("DELETE FROM identity_auditentry WHERE id = %s", [kept.pk])

    assert AuditEntry.objects.filter(pk=kept.pk).exists()


def test_pruning_is_recorded_and_permits_no_other_deletion(tenant: Tenant) -> None:
    old, young = entry(tenant, days_ago=401), entry(tenant, days_ago=399)

    assert prune_audit_log() >= 1

    assert not AuditEntry.objects.filter(pk=old.pk).exists()
    assert AuditEntry.objects.filter(pk=young.pk).exists()
    noted = AuditEntry.objects.filter(act="Pruned the audit log").latest("pk")
    assert noted.actor_kind == "service"
    assert noted.facts["entries"] >= 1
    with pytest.raises(DatabaseError, match="append-only"):
        AuditEntry.objects.filter(pk=young.pk).delete()


def test_missing_triggers_cause_a_warning(committed_db: None) -> None:
    assert not [found for found in run_checks(databases=["default"]) if found.id == "identity.W001"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE identity_auditentry DISABLE TRIGGER identity_audit_rows")
        assert [found.id for found in run_checks(databases=["default"]) if found.id == "identity.W001"] == ["identity.W001"]
        transaction.set_rollback(True)


def test_an_entry_is_rolled_back_with_its_change(tenant: Tenant) -> None:
    with transaction.atomic():
        record("Tried something", about=tenant)
        transaction.set_rollback(True)

    assert not AuditEntry.objects.filter(tenant_id=tenant.pk, act="Tried something").exists()


def test_an_entry_has_an_actor_an_ip_address_an_act_and_a_reason(tenant: Tenant) -> None:
    with acting(Act(ADA, ip="192.0.2.7", user_agent="Browser 1")), said("Suspend", "does not pay"):
        made = record(
            "Suspended", about=tenant, before={"status": "active", "name": "x"}, after={"status": "suspended", "name": "x"}, users=3
        )

    made.refresh_from_db()
    assert (made.actor_kind, made.actor_id, made.actor_name) == ("staff", "7", "ada@example.test")
    assert (made.ip, made.user_agent, made.reason) == ("192.0.2.7", "Browser 1", "does not pay")
    assert (made.object_type, made.object_id, made.tenant_id) == ("identity.tenant", tenant.pk, tenant.pk)
    assert (made.before, made.after, made.facts) == ({"status": "active"}, {"status": "suspended"}, {"users": 3})


def test_a_secret_inside_a_fact_or_an_image_is_hidden(tenant: Tenant) -> None:
    planted = secrets.token_hex(16)
    made = record(
        "Rotated",
        about=tenant,
        before={"token": "old"},
        after={"token": planted},
        client_secret=planted,
        found={"api_key": planted},
        keys=2,
    )

    made.refresh_from_db()
    assert made.facts == {"client_secret": HIDDEN, "found": {"api_key": HIDDEN}, "keys": 2}
    assert (made.before, made.after) == ({"token": HIDDEN}, {"token": HIDDEN})


def test_the_entry_of_a_sign_in_contains_the_actor_that_the_caller_passes(tenant: Tenant) -> None:
    made = record("Signed in", tenant_id=tenant.pk, actor=ADA, ip="192.0.2.8", user_agent="Browser 2")

    assert (made.actor_name, made.ip, made.tenant_id) == ("ada@example.test", "192.0.2.8", tenant.pk)


@pytest.mark.parametrize(
    "name",
    ["password", "password_hash", "sealed_secret", "secret_digest", "client_secret", "token", "refresh_token_value", "api_key", "apiKey",
     "sealed_private_key", "Authorization", "webhook_token", "otp_seed", "recovery_codes", "clientSecret", "user_code", "jti"],
)  # fmt: skip
def test_a_value_with_the_name_of_a_secret_is_hidden(name: str) -> None:
    planted = secrets.token_hex(16)

    assert is_secret(name)
    assert shown(name, planted) == HIDDEN
    assert planted not in str(shown("options", {"deep": [{name: {"within": planted}}]}))
    assert shown(name, "") == ""


@pytest.mark.parametrize("name", ["name", "email", "token_endpoint_auth_method", "token_lifetime", "passwordPolicy", "last_password_reset"])
def test_a_value_whose_name_only_mentions_a_secret_is_shown(name: str) -> None:
    assert shown(name, "value") == "value"


def test_a_changed_secret_is_recorded_as_changed_and_bytes_are_never_shown() -> None:
    assert differing({"sealed": "a", "same": 1}, {"sealed": "b", "same": 1}) == ({"sealed": HIDDEN}, {"sealed": HIDDEN})
    assert shown("image", b"raw") == HIDDEN
    assert shown("jwk", {"kty": "EC", "x": "public", "d": "planted"}) == {"kty": "EC", "x": "public", "d": HIDDEN}


def test_a_very_long_value_is_not_stored() -> None:
    assert shown("description", "a" * (LONGEST + 1)) == f"(not kept: {LONGEST + 1} characters)"


def test_pages_of_a_long_audit_log_use_an_index_for_every_filter(tenant: Tenant) -> None:
    columns = (
        "tenant_id, at, act_id, kind, act, object_type, object_id, object_text, actor_kind, actor_id, actor_name, user_agent, reason, facts"
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO identity_auditentry ({columns}) SELECT %s, now() - n * interval '1 second', gen_random_uuid(), 'change', '',"  # noqa: S608
            " 'identity.user', (n %% 5000)::text, '', 'staff', '1', 'staff' || (n %% 50), '', '', '{}' FROM generate_series(1, 30000) n",
            [tenant.pk],
        )
        cursor.execute("ANALYZE identity_auditentry")
        for question in (
            Question(None),
            Question(tenant.pk),
            Question(tenant.pk, since=timezone.now() - timedelta(hours=1)),
            Question(tenant.pk, actor="staff7"),
            Question(tenant.pk, object_id="77"),
        ):
            plan = question.walked().order_by("-at", "-pk")[:51].explain()
            assert "Seq Scan" not in plan, plan
            assert "Index" in plan, plan
        first = browse(Question(tenant.pk, kind="change", actor="staff7"))
        second = browse(Question(tenant.pk, kind="change", actor="staff7"), read_place({"before": first.older}))
        back = browse(Question(tenant.pk, kind="change", actor="staff7"), read_place({"after": second.newer}))
        transaction.set_rollback(True)

    assert [row.pk for row in back.rows] == [row.pk for row in first.rows]
    assert first.rows[-1].at > second.rows[0].at
    assert {row.actor_name for row in [*first.rows, *second.rows]} == {"staff7"}


def test_an_export_contains_every_entry_once_and_is_safe_for_spreadsheets(tenant: Tenant) -> None:
    for number in range(3):
        entry(tenant, act="=HYPERLINK(1)", object_id=str(number), before={"name": "a"}, after={"name": "b"})

    table = list(csv.DictReader(io.StringIO("".join(exported(Question(tenant.pk), "csv")))))
    lines = [json.loads(line) for line in "".join(exported(Question(tenant.pk), "jsonl")).splitlines()]

    assert [row["object_id"] for row in table] == [row["object_id"] for row in lines] == ["0", "1", "2"]
    assert table[0]["act"] == "'=HYPERLINK(1)"
    assert (json.loads(table[0]["after"]), lines[0]["after"]) == ({"name": "b"}, {"name": "b"})


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (["manage.py", "delete_tenant", "--password", "planted"], "manage.py delete_tenant"),
        (["manage.py", "runserver"], ""),
        (["manage.py"], ""),
    ],
)
def test_a_command_is_recorded_by_its_name_without_its_arguments(arguments: list[str], label: str) -> None:
    act = act_of_command(arguments)

    assert (act.label if act else "") == label
    assert act is None or (act.actor.kind, "@" in act.actor.name, "planted" in str(act)) == ("command", True, False)


def test_an_import_command_records_its_job_and_no_imported_user(tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": "ada@example.test"}]
    with acting(act_of_command(["manage.py", "import_users"])):
        job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows, upsert=False)
        run_job(job.pk)

    assert User.objects.of(tenant.pk).count() == 1
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, actor_kind="command")
    assert {entry.object_type for entry in noted} == {"identity.job"}
    assert {entry.act for entry in noted} == {"manage.py import_users"}


@pytest.mark.parametrize(
    ("act", "done"), [("manage.py seed_demo", "Added by manage.py seed_demo"), ("Add member", "Add member"), ("", "Added")]
)
def test_an_entry_without_an_act_shows_its_kind(act: str, done: str) -> None:
    assert AuditEntry(kind=AuditEntry.Kind.ADD, act=act).done == done
