"""The move of a tenant with a row of every model. Every row arrives, and the target decrypts every secret without the source's keys."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models

from identity.models import AuditEntry, Connection, Tenant
from identity.moving import importing, leaving
from identity.moving.carrying import Sealed, carriage
from identity.moving.sealing import with_values
from identity.moving.tables import CarriedTable, carried_tables
from identity.purging import coverage
from provisioning.models import ActionVersion
from tests.factories.admin import Rows
from tests.identity.moving.installations import Target, exported, quiet
from tests.identity.test_tenant_deletion import rows_that_name


def counts(tenant_id: str) -> dict[str, int]:
    return {table.name: table.owned.rows(tenant_id).count() for table in carried_tables()}


def with_every_row(tenant: Tenant) -> Rows:
    """Create a row of every model, with a value in each encrypted column."""
    rows = Rows(tenant)
    for owned in coverage().ordered:
        if owned.model not in carriage().left_behind:
            rows.of(owned.model)
    for table in carried_tables():
        for sealed in table.sealed:
            mine = table.owned.rows(tenant.pk)
            models.QuerySet.update(mine, **{sealed.column: _unsealed(table, sealed)})
            for row in mine.all():
                values = [(pointer, _plain(row, sealed), place) for pointer, place in sealed.places(row).items()]
                assert values, f"{table.name}.{sealed.column} contains no encrypted value"
                models.QuerySet.update(mine.filter(pk=row.pk), **{sealed.column: with_values(getattr(row, sealed.column), values)})
    return rows


def _unsealed(table: CarriedTable, sealed: Sealed) -> Any:
    """Return a value with the structure of the column. It contains an unsealed text in the place of each secret."""
    if sealed.members:
        return {sealed.members[0]: "x", "kept": 1}
    if table.model is ActionVersion:
        return [{"name": "TOKEN", "sealed": "x", "updated_at": "2030-01-01T00:00:00.000Z"}]
    if table.model is Connection:
        return {"client_secret": "x", "decryptionKey": {"json": "x"}}
    column = table.model._meta.get_field(sealed.column)
    if isinstance(column, models.BinaryField):
        return f"{next(iter(settings.ENCRYPTION_KEYS))}.x".encode()
    return {"secret": "x"} if isinstance(column, models.JSONField) else "x"


def _plain(row: Any, sealed: Sealed) -> str:
    text = f"the secret {sealed.column} of {row.pk}"
    return base64.b64encode(text.encode()).decode() if isinstance(getattr(row, sealed.column), bytes | memoryview) else text


def test_every_table_arrives_at_the_target_and_a_removal_deletes_every_row(tenant: Tenant, target: Target, tmp_path: Path) -> None:
    with_every_row(tenant)
    archive = exported(tenant, tmp_path / "archive")
    before = counts(tenant.pk)
    assert [name for name, count in before.items() if not count] == []

    with target.here():
        importing.import_tenant(archive, progress=quiet)
        assert counts(tenant.pk) == before
        assert Tenant.objects.get(pk=tenant.pk).status == "arriving"

        leaving.remove_tenant(tenant_id=tenant.pk, progress=quiet)
        assert rows_that_name(tenant.pk) == {}
        assert not AuditEntry.objects.filter(tenant_id=tenant.pk).exists()


def test_an_opened_tenant_has_the_status_that_it_had_before_the_stop(tenant: Tenant, target: Target, tmp_path: Path) -> None:
    with_every_row(tenant)
    Tenant.objects.filter(pk=tenant.pk).update(status="suspended", event_retention_days=9)
    archive = exported(tenant, tmp_path / "archive")
    receipt = leaving.hand_over(archive)
    with target.here():
        importing.import_tenant(archive, progress=quiet)
        assert importing.open_tenant(tenant_id=tenant.pk, receipt=receipt) == "suspended"
        assert Tenant.objects.get(pk=tenant.pk).event_retention_days == 9


def test_every_table_of_the_archive_belongs_to_a_model(tenant: Tenant) -> None:
    assert all(issubclass(table.model, models.Model) for table in carried_tables())
