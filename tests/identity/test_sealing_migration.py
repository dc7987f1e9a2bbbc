"""The migration that seals secret options of connections. Earlier versions stored these options unencrypted."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.db import connection, transaction

from events.models import Event, Mark
from identity import migrations
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.events.log_reading import numbered
from tests.factories.models.identity import ConnectionFactory

_NAME = next(module.name for module in iter_modules(migrations.__path__) if module.name.endswith("_connection_options_sealed"))
_MIGRATION = import_module(f"{migrations.__name__}.{_NAME}")
PLAIN = {"from": "+1", "twilio_token": "secret-one", "gateway_authentication": {"method": "m", "secret": "secret-two"}, "homemade": [1]}


def migrate() -> None:
    with transaction.atomic(), connection.schema_editor() as editor:
        _MIGRATION.seal_old_rows(None, editor)


def left_in_clear(row: Connection, options: dict[str, Any]) -> None:
    """Write unencrypted options, as an earlier version did, without leaving a mark of the change or recording an event."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_connection SET options = %s WHERE id = %s", [json.dumps(options), row.pk])
    Mark.objects.filter(row_key=row.pk).delete()


def test_the_migration_seals_old_rows_without_an_event_or_a_mark(tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms", options={"from": "+1"})
    left_in_clear(row, PLAIN)
    events = len(numbered(tenant.pk))

    migrate()

    now = Connection.objects.of(tenant.pk).get()
    assert now.options == {"from": "+1", "gateway_authentication": {"method": "m"}}
    assert now.open_options() == PLAIN
    assert not Mark.objects.filter(row_key=row.pk).exists()
    assert Event.objects.filter(tenant_id=tenant.pk).count() == events


def test_the_migration_does_not_change_a_secret_that_is_already_sealed(tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms", options={"twilio_token": "newer"})
    left_in_clear(row, PLAIN)

    migrate()

    now = Connection.objects.of(tenant.pk).get()
    assert now.sealed_options["twilio_token"] == row.sealed_options["twilio_token"]
    assert now.secret_option("twilio_token") == "newer"


def test_new_changes_are_recorded_after_the_migration(tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="texts", strategy="sms", options={"from": "+1"})
    left_in_clear(row, PLAIN)
    migrate()
    events = len(numbered(tenant.pk))

    update_connection(tenant_id=tenant.pk, connection_id=row.pk, changes={"options": {"from": "+1", "homemade": [2]}})

    assert [event["type"] for event in numbered(tenant.pk)[events:]] == ["connection.updated"]
