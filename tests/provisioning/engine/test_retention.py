from __future__ import annotations

import pytest
from django.db import connection

from events.models import EventStream
from identity.models import Tenant
from provisioning.dead_letters.redelivery import Order, redeliver_letters
from provisioning.engine import delivering, dispatch, retention
from provisioning.models import Attempt, DeadLetter, Delivery, Lane
from provisioning.runs.failures import DataFailure
from tests.plans import plan_of
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events


def _age(stream: EventStream, days: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE provisioning_delivery SET created_at = now() - make_interval(days => %s) WHERE stream_id = %s", [days, stream.pk]
        )
        cursor.execute(
            "UPDATE provisioning_attempt SET started_at = now() - make_interval(days => %s) WHERE tenant_id = %s", [days, stream.tenant_id]
        )


def _failed_delivery(tenant: Tenant, stream: EventStream, recorder: Recorder) -> Delivery:
    error = DataFailure("too long")
    error.exchanges = [{"request": {}}]
    recorder.answers["user:bad"] = [error]
    append_events(tenant, ["user:bad"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:bad")
    return Delivery.objects.get(stream_id=stream.pk, key="user:bad")


def test_exchanges_are_deleted_after_two_weeks_and_ended_deliveries_after_a_month(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: object
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []  # type: ignore[attr-defined]  # pytest-django's settings
    failed = _failed_delivery(tenant, stream, recorder)
    append_events(tenant, ["user:good"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:good")

    _age(stream, 13)
    retention.prune()
    assert Attempt.objects.get(delivery=failed).exchanges == [{"request": {}}]
    _age(stream, 15)
    retention.prune()
    assert Attempt.objects.get(delivery=failed).exchanges == []
    assert Delivery.objects.filter(stream_id=stream.pk).count() == 2

    _age(stream, 31)
    retention.prune()

    # An open dead letter and its delivery are kept.
    assert list(Delivery.objects.filter(stream_id=stream.pk)) == [failed]
    redeliver_letters(tenant_id=tenant.pk, letter_ids=[DeadLetter.objects.get(delivery=failed).pk], order=Order("ada@example.test"))
    delivering.deliver_lane(stream.pk, "user:bad")
    retention.prune()
    assert not Delivery.objects.filter(stream_id=stream.pk).exists()
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    assert not Attempt.objects.filter(tenant_id=tenant.pk).exists()


def test_waiting_deliveries_are_never_deleted(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    _age(stream, 400)

    retention.prune()

    assert Delivery.objects.filter(stream_id=stream.pk).count() == 1
    assert Lane.objects.filter(stream_id=stream.pk).exists()


def test_rows_that_a_deleted_stream_has_left_are_deleted(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"] * 5)
    dispatch.dispatch_tenant(tenant.pk)
    stream_id = stream.pk
    stream.delete()

    retention.prune()

    assert not Delivery.objects.filter(stream_id=stream_id).exists()


@pytest.mark.parametrize(
    ("statement", "values", "column"),
    [
        (retention._CLEAR_BODIES, [14 * 86400.0, 10], "started_at"),
        (retention._OLD, [30 * 86400.0, 10], "created_at"),
        (retention._OLD_ALERTS, [30 * 86400.0], "created_at"),
        (retention._OLD_TRIALS, [30 * 86400.0], "started_at"),
    ],
    ids=["bodies", "deliveries", "alerts", "trials"],
)
def test_the_search_for_old_rows_uses_an_index(tenant: Tenant, statement: str, values: list[object], column: str) -> None:
    conditions = [condition for node in plan_of(statement, values) if (condition := node.get("Index Cond"))]
    assert [condition for condition in conditions if f"{column} <" in condition], conditions
