"""Installed actions that do not end, in a real worker. The worker interrupts each action at the end of its time budget."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from events.log.numbering import number_tenant
from identity.models import Connection, Tenant
from provisioning.engine import dispatch
from provisioning.engine.streams import create_stream
from provisioning.models import Attempt, Delivery
from provisioning.services.actions import create_action
from tests.deadlines import eventually
from tests.factories.models.identity import UserFactory
from tests.faults.endless import ENTRY_POINT
from tests.faults.worker import Worker

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("way", ["loop", "sleep"])
def test_a_worker_interrupts_an_action_at_the_end_of_its_budget_and_continues(
    way: str, tenant: Tenant, database_connection: Connection, start_worker: Callable[..., Worker]
) -> None:
    action = create_action(tenant_id=tenant.pk, name="endless", entry_point_path=ENTRY_POINT, secrets={"WAY": way}, deploy=True)
    stream = create_stream(
        tenant_id=tenant.pk, subscriptions=["user.created"], destination_type="action", destination={"action_id": str(action.pk)}
    )
    worker = start_worker(concurrency=1, DELIVERY_BUDGET_SECONDS="1", DELIVERY_RETRY_DELAYS="0.2", BREAKER_FAILURES="0")
    before = worker.children()
    started = time.monotonic()
    UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="a@example.test", nickname="endless")
    UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="b@example.test", nickname="brief")
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)

    try:
        eventually(lambda: not Delivery.objects.filter(stream_id=stream.pk, state="todo").exists(), seconds=30)
    except AssertionError as error:
        raise AssertionError(worker.log) from error

    # All deliveries ended before the limits of the Celery task (20 and 30 seconds), so these limits did not end the action.
    assert time.monotonic() - started < 18
    assert worker.children() == before
    assert sorted(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == ["dead", "delivered"]
    tries = Attempt.objects.filter(delivery__stream_id=stream.pk, outcome="failed")
    assert [(attempt.error_class, "interrupted" in attempt.error_message) for attempt in tries] == [("transient", True)] * 2
    assert all(900 < (attempt.duration_ms or 0) < 3000 for attempt in tries)
    assert all(attempt.log_lines[0]["message"] == "begun" for attempt in tries)
