"""Real workers deliver a burst of one tenant. The event of another tenant does not wait for the whole burst."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from identity.models import Tenant
from provisioning.engine.delivering import TURN_SECONDS
from tests.deadlines import eventually
from tests.factories.models.identity import TenantFactory
from tests.faults.worker import Worker, recorded
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

BURST = 10_000
WORKERS = 2
# A turn for the burst, a turn for the event of the other tenant, and four more seconds because the machine of the test may be slow.
BOUND_SECONDS = 2 * TURN_SECONDS + 4.0


def test_an_event_is_delivered_in_time_during_a_burst_of_another_tenant(
    tenant: Tenant, start_worker: Callable[..., Worker], directory: Path
) -> None:
    quiet = TenantFactory.create(id=f"{tenant.pk}-b", name="quiet", host=f"b.{tenant.pk}.example.test")
    start_worker(concurrency=WORKERS)
    make_stream(tenant), make_stream(quiet)
    (directory / "slow").touch()
    append_events(tenant, [f"user:{tenant.pk}-{number}" for number in range(BURST)])
    eventually(lambda: len(recorded(directory)) > 20, seconds=60)
    waits = []
    for number in range(3):
        key = f"user:{quiet.pk}-{number}"
        append_events(quiet, [key])
        began = time.monotonic()
        eventually(lambda: recorded(directory, step="end", keys=[key]), seconds=60)  # noqa: B023  (called in this round only)
        waits.append(time.monotonic() - began)
    assert len(recorded(directory, step="end")) < BURST, "the burst ended too early for this test"
    assert max(waits) < BOUND_SECONDS, waits
