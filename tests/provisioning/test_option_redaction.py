"""An earlier version published secrets of connections.

The redaction removes the secrets from the log, dead letters, attempts, the audit log and the rows of connections.
"""

from __future__ import annotations

import io
import json
import secrets
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction

from events.log.numbering import number_tenant
from events.models import Event, LogEntry
from identity.models import AuditEntry, Connection, Tenant
from identity.services.connections import update_connection
from provisioning.models import Attempt
from provisioning.option_redaction import REMOVED, redact_attempts, redact_letters
from provisioning.runs.masking import Mask
from tests.events.log_reading import folded, numbered, tables
from tests.factories.models.identity import AuditEntryFactory, ConnectionFactory, TenantFactory
from tests.factories.models.provisioning import AttemptFactory, DeadLetterFactory, DeliveryFactory
from tests.factories.option_secrets import hidden_text


@dataclass
class Published:
    """A tenant with an SMS connection whose secrets an earlier version stored unencrypted and published in events.

    `hidden` contains the secrets by their paths in the options.
    """

    tenant: Tenant
    connection: Connection
    hidden: dict[str, str]

    @property
    def options(self) -> dict[str, Any]:
        gateway = {"method": "bearer", "audience": "gateway", "secret": self.hidden["gateway_authentication/secret"]}
        homemade = {"pins": [{"pin": self.hidden["homemade"]}]}
        return {"from": "+123", "twilio_token": self.hidden["twilio_token"], "gateway_authentication": gateway, "homemade": homemade}


def published(tenant: Tenant) -> Published:
    """Create rows with the secrets in every table in which an earlier version left them."""
    hidden = {path: hidden_text() for path in ("twilio_token", "gateway_authentication/secret", "homemade")}
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms", options={"from": "+123"})
    left = Published(tenant, row, hidden)
    update_connection(tenant_id=tenant.pk, connection_id=row.pk, changes={"display_name": "Texts"})
    number_tenant(tenant.pk)
    for event in Event.objects.filter(tenant_id=tenant.pk):
        envelope = json.loads(bytes(event.body))
        for name in ("object", "previous_object"):
            if name in envelope["data"]:
                envelope["data"][name]["options"] = left.options
        Event.objects.filter(pk=event.pk).update(body=json.dumps(envelope, separators=(",", ":")).encode())
    _deliver(left)
    _note(left)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_connection SET options = %s WHERE id = %s", [json.dumps(left.options), row.pk])
        # Delete the mark of this write, and change the row again, so that the new mark contains the secrets.
        cursor.execute("DELETE FROM events_mark WHERE row_key = %s", [row.pk])
        cursor.execute("UPDATE identity_connection SET is_domain_connection = true WHERE id = %s", [row.pk])
    return left


def _deliver(left: Published) -> None:
    event = Event.objects.filter(tenant_id=left.tenant.pk).latest("pk")
    named = {"stream_id": "est_" + "a" * 22, "tenant_id": left.tenant.pk, "key": event.root, "event_id": event.event_id}
    delivery = DeliveryFactory.create(
        **named, event_type=event.type, position=2, event=event.pk, state="dead", error_message=f"400: {left.hidden['twilio_token']}?"
    )
    whole = bytes(event.body).decode()
    exchange = {"verb": "POST", "path": "/", "status": 400, "response_body": f"refused {left.hidden['homemade']}"}
    AttemptFactory.create(
        delivery=delivery,
        outcome="failed",
        exchanges=[{**exchange, "request_body": whole}, {**exchange, "request_body": whole[:-40] + "… (9999 characters)"}],
        log_lines=[f"sent {left.hidden['twilio_token']}"],
        error_message=f"no {left.hidden['gateway_authentication/secret']}",
    )
    DeadLetterFactory.create(
        delivery=delivery,
        body=event.body,
        rebuilt_body=event.body,
        reason=f"refused {left.hidden['homemade']}",
        error_class="rejected",
    )


def _note(left: Published) -> None:
    about = {"tenant_id": left.tenant.pk, "object_type": "identity.connection", "object_id": left.connection.pk, "actor_kind": "staff"}
    act = {"act_id": "5e7ab5a1-0000-4000-8000-000000000000", "actor_name": "ada"}
    AuditEntryFactory.create(**about, **act, kind="add", after={"strategy": "sms", "name": "texts", "options": left.options})
    changed = {"options": {**left.options, "twilio_token": "(hidden)"}}
    AuditEntryFactory.create(**about, **act, kind="change", before=changed, after={"options": {"from": "+1"}})


@pytest.fixture
def here(tenant: Tenant) -> Published:
    return published(tenant)


@pytest.fixture
def there(tenant: Tenant) -> Published:
    tenant_id = f"t-{secrets.token_hex(6)}"
    return published(TenantFactory.create(id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test"))


def holding(left: Published) -> set[str]:
    """Return the names of the tables that contain a secret as text, JSON or bytes. Rows of other tenants are not searched."""
    found = set()
    patterns = [f"%{written}%" for text in left.hidden.values() for written in (text, text.encode().hex())]
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            own = (
                "(tenant_id = %(tenant)s OR tenant_id IS NULL) AND"
                if "tenant_id" in {field.attname for field in model._meta.fields}
                else ""
            )
            # The name of the table comes from the model, and not from input.
            statement = f"SELECT EXISTS (SELECT 1 FROM {table} t WHERE {own} to_jsonb(t)::text LIKE ANY(%(patterns)s))"  # noqa: S608
            cursor.execute(statement, {"patterns": patterns, "tenant": left.tenant.pk})
            found |= {table} if cursor.fetchone()[0] else set()
    return found


def changed_as_a_redaction(entry: AuditEntry, change: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('identity.audit_redaction', 'connection options', true)")
        cursor.execute(f"UPDATE identity_auditentry SET {change} WHERE id = %s", [entry.pk])  # noqa: S608 (the test's own text)


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("redact_connection_secrets", *arguments, stdout=out)
    return out.getvalue()


def bodies_of(left: Published) -> list[bytes]:
    return [bytes(event.body) for event in Event.objects.filter(tenant_id=left.tenant.pk).order_by("pk")]


EVERYWHERE = {
    "events_event",
    "events_mark",
    "identity_auditentry",
    "identity_connection",
    "provisioning_attempt",
    "provisioning_deadletter",
    "provisioning_delivery",
}


def test_a_dry_run_lists_the_secrets_and_changes_nothing(here: Published) -> None:
    assert holding(here) == EVERYWHERE
    before = numbered(here.tenant.pk)

    told = command("--tenant", here.tenant.pk)

    for path in here.hidden:
        assert f"{here.tenant.pk} {here.connection.pk} {path}: in " in told
    assert "nothing was changed" in told
    assert not any(text in told for text in here.hidden.values())
    assert holding(here) == EVERYWHERE
    assert numbered(here.tenant.pk) == before


def test_no_table_contains_a_secret_after_the_run_and_events_keep_all_other_data(here: Published, there: Published) -> None:
    before = {event["id"]: event for event in numbered(here.tenant.pk)}
    places = list(LogEntry.objects.filter(tenant_id=here.tenant.pk).order_by("position").values())
    theirs = numbered(there.tenant.pk)

    told = command("--apply", "--tenant", here.tenant.pk)

    assert holding(here) == set()
    assert holding(there) == EVERYWHERE
    assert numbered(there.tenant.pk) == theirs
    assert [place for place in LogEntry.objects.filter(tenant_id=here.tenant.pk).order_by("position").values() if place in places] == places
    for event in numbered(here.tenant.pk)[: len(before)]:
        was = before[event["id"]]
        for name in ("object", "previous_object"):
            if name in was["data"]:
                shown = {"from": "+123", "gateway_authentication": {"method": "bearer", "audience": "gateway"}}
                was["data"][name]["options"] = shown
        assert event == was
        assert list(event)[-1] == list(was)[-1] == "x0stream"
    assert there.tenant.pk not in told
    assert not any(text in told for text in here.hidden.values())
    assert Connection.objects.of(here.tenant.pk).get().open_options() == here.options


def test_secrets_to_replace_are_listed_with_their_use_and_recorded_in_the_audit_log(here: Published) -> None:
    with connection.cursor() as cursor:
        newer = {**here.options, "twilio_token": "another"}
        cursor.execute("UPDATE identity_connection SET options = %s WHERE id = %s", [json.dumps(newer), here.connection.pk])

    told = command("--apply", "--tenant", here.tenant.pk)

    lines = {line.split()[2].rstrip(":"): line for line in told.splitlines() if line.startswith(f"  {here.tenant.pk} ")}
    assert "in use now" in lines["gateway_authentication/secret"]
    assert lines["homemade"].endswith("in use now, not known to the strategy")
    kept = AuditEntry.objects.get(tenant_id=here.tenant.pk, act="Took options of connections out of the log")
    assert kept.facts["rotate"] == [f"{here.connection.pk} {path}" for path in sorted(here.hidden)]
    assert "No secret was readable." in command("--tenant", here.tenant.pk)


def test_the_next_run_completes_a_run_that_was_stopped(here: Published) -> None:
    mask = Mask(here.hidden.values())
    redact_attempts(here.tenant.pk, mask, is_applied=True)
    redact_letters(here.tenant.pk, mask)
    Event.objects.filter(pk=Event.objects.filter(tenant_id=here.tenant.pk).earliest("pk").pk).update(body=b"{}")

    told = command("--apply", "--tenant", here.tenant.pk)

    assert all(f"{here.connection.pk} {path}: in " in told for path in here.hidden)
    assert holding(here) == set()


def test_a_second_run_changes_nothing(here: Published) -> None:
    command("--apply", "--tenant", here.tenant.pk)
    bodies = bodies_of(here)
    attempt = Attempt.objects.filter(tenant_id=here.tenant.pk).values().get()

    assert "No secret was readable." in command("--apply", "--tenant", here.tenant.pk)

    assert bodies_of(here) == bodies
    assert Attempt.objects.filter(tenant_id=here.tenant.pk).values().get() == attempt


def test_a_truncated_request_body_is_removed_and_a_complete_body_keeps_other_members(here: Published) -> None:
    command("--apply", "--tenant", here.tenant.pk)

    whole, cut = Attempt.objects.get(tenant_id=here.tenant.pk).exchanges
    assert json.loads(whole["request_body"])["data"]["object"]["options"]["from"] == "+123"
    assert cut["request_body"] == REMOVED
    assert whole["response_body"] == "refused ***"


def test_replaying_the_redacted_events_yields_the_rows_of_the_tables(here: Published) -> None:
    command("--apply", "--tenant", here.tenant.pk)
    update_connection(tenant_id=here.tenant.pk, connection_id=here.connection.pk, changes={"display_name": "Later"})
    assert folded(numbered(here.tenant.pk)) == tables(here.tenant.pk)


def test_audit_entries_show_that_a_value_is_hidden(here: Published) -> None:
    command("--apply", "--tenant", here.tenant.pk)

    added, changed = AuditEntry.objects.filter(object_id=here.connection.pk, actor_name="ada").order_by("pk")
    hidden = {"from": "+123", "twilio_token": "(hidden)", "homemade": "(hidden)"}
    gateway = {"gateway_authentication": {"method": "bearer", "audience": "gateway", "secret": "(hidden)"}}
    assert added.after == {"strategy": "sms", "name": "texts", "options": {**hidden, **gateway}}
    assert (changed.before, changed.after) == ({"options": {**hidden, **gateway}}, {"options": {"from": "+1"}})


@pytest.mark.parametrize(
    "change",
    [
        "actor_name = 'eve'",
        "at = now()",
        'after = after || \'{"name": "eve"}\'',
        "after = after - 'options'",
        "after = NULL",
        "before = '{\"options\": {}}'",
    ],
)
def test_the_redaction_changes_only_options_in_the_audit_log(here: Published, change: str) -> None:
    entry = AuditEntry.objects.filter(object_id=here.connection.pk, kind="add", actor_name="ada").get()
    with pytest.raises(DatabaseError, match="append-only"):
        changed_as_a_redaction(entry, change)


def test_the_redaction_does_not_make_other_audit_entries_writable(tenant: Tenant) -> None:
    entry = AuditEntryFactory.create(tenant_id=tenant.pk, object_type="identity.user", kind="change", after={"options": {"a": 1}})
    with pytest.raises(DatabaseError, match="append-only"):
        changed_as_a_redaction(entry, "after = '{\"options\": {}}'")


def test_an_unknown_tenant_is_refused(tenant: Tenant) -> None:
    with pytest.raises(CommandError, match="The tenant nowhere has no log"):
        command("--tenant", "nowhere")
