"""Metrics of the log that the service reads from the database, and requests for metrics during a database failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from events.figures import EVENTS, DatabaseFigures, Figure, counted
from events.models import Event, Head, LogEntry, Mark, Outbox
from events.record import tripwire
from identity.models import Connection, Tenant
from tests.events.log_reading import numbered
from tests.factories.models.identity import UserFactory


def _values(figures: DatabaseFigures = EVENTS) -> dict[str, float]:
    return {sample.name: sample.value for metric in figures.collect() for sample in metric.samples}


def test_waiting_events_are_counted_and_have_an_age(tenant: Tenant, database_connection: Connection) -> None:
    # Delete outbox rows that other tests left, because the counts below cover all tenants.
    Outbox.objects.exclude(tenant_id=tenant.pk).delete()
    UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
    Event.objects.filter(tenant_id=tenant.pk).update(time=datetime.now(UTC) - timedelta(days=9))
    before = _values()
    assert before["outbox_unsequenced"] >= 2
    assert before["outbox_watermark_age_seconds"] > 8 * 86400
    numbered(tenant.pk)
    assert _values()["outbox_unsequenced"] <= before["outbox_unsequenced"] - 2


def test_the_metrics_contain_the_age_of_the_oldest_event_and_of_the_newest_floor(tenant: Tenant, database_connection: Connection) -> None:
    numbered(tenant.pk)
    old = datetime.now(UTC) - timedelta(days=4000)
    LogEntry.objects.filter(tenant_id=tenant.pk).update(recorded_at=old)
    Head.objects.filter(pk=tenant.pk).update(floor_recorded_at=datetime.now(UTC))
    values = _values()
    assert values["log_oldest_event_age_seconds"] >= 4000 * 86400
    assert values["outbox_retention_floor_age_seconds"] < 86400


def test_a_change_without_signals_is_counted_when_the_sweep_finds_it(tenant: Tenant, database_connection: Connection) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
    before = _values()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_user SET nickname = 'changed' WHERE id = %s", [user.pk])
    assert Mark.objects.filter(tenant_id=tenant.pk).exists()
    assert _values()["tripwire_marks_waiting"] >= 1
    while Mark.objects.filter(tenant_id=tenant.pk).exists():
        tripwire.sweep()
    assert _values()["tripwire_swept_total"] >= before["tripwire_swept_total"] + 1


@pytest.mark.usefixtures("committed_db")
def test_counts_stop_at_their_limit() -> None:
    figures = DatabaseFigures("x", [Figure("x_rows", "Rows.", counted("1 FROM generate_series(1, 1000000)"))])
    assert _values(figures) == {"x_rows": 100_000.0, "x_figures_failed": 0.0}


@pytest.mark.usefixtures("committed_db")
def test_a_database_timeout_omits_the_metrics_and_is_reported() -> None:
    figures = DatabaseFigures("x", [Figure("x_slow", "Slow.", "SELECT 1 FROM pg_sleep(30)")])
    assert _values(figures) == {"x_figures_failed": 1.0}
    assert _values()["events_figures_failed"] == 0.0, "the connection can be used again"
