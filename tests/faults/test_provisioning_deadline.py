"""Every event reaches its final state within a documented time, although the destination refuses the event and workers are killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from identity.models import Tenant
from provisioning.models import Delivery
from tests.deadlines import eventually
from tests.faults.bounds import longest_seconds
from tests.faults.conftest import RedisServer
from tests.faults.delivery_invariants import assert_sound, is_settled
from tests.faults.worker import Worker
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

USERS = 30
KILLS = 3
DELAYS, JITTER, LEASE, NUDGE, SWEEP = (0.5, 1.0, 2.0), 0.2, 1.5, 1.0, 0.2
SHORT = {
    "DELIVERY_RETRY_DELAYS": ",".join(map(str, DELAYS)),
    "DELIVERY_RETRY_JITTER": str(JITTER),
    "DELIVERY_LEASE_SECONDS": str(LEASE),
    "DELIVERY_NUDGE_SECONDS": str(NUDGE),
    "DELIVERY_SWEEP_SECONDS": str(SWEEP),
    "BREAKER_FAILURES": "0",
}
# The longest time until a killed worker process is replaced, on a busy test machine.
RESTART_SECONDS = 10.0
_LONGEST = """
SELECT max(extract(epoch FROM d.settled_at - l.recorded_at))::float8 FROM provisioning_delivery d
JOIN events_logentry l ON l.tenant_id = d.tenant_id AND l.position = d.position WHERE d.stream_id = %s
"""


def longest(stream_id: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_LONGEST, [stream_id])
        return float(cursor.fetchone()[0])


@pytest.mark.parametrize("fault", ["refused", "refused and killed", "refused and forgotten by the broker"])
def test_an_event_is_delivered_or_becomes_a_dead_letter_within_the_documented_time(
    fault: str, tenant: Tenant, start_worker: Callable[..., Worker], directory: Path, redis_server: RedisServer
) -> None:
    start_worker(concurrency=2, **SHORT)
    stream = make_stream(tenant)
    (directory / "refuse").touch()
    append_events(tenant, [f"user:{tenant.pk}-{number}" for number in range(USERS)])
    kills = KILLS if fault == "refused and killed" else 0
    for _ in range(kills):
        (directory / "failing").touch()
        eventually(lambda: not (directory / "failing").exists(), seconds=30)
    if fault == "refused and forgotten by the broker":
        eventually(lambda: Delivery.objects.filter(stream_id=stream.pk, attempts__gt=0).exists(), seconds=30)
        redis_server.client.flushall()

    eventually(lambda: is_settled(stream), seconds=120)

    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"dead"}
    assert_sound(stream, directory, crashes=kills)
    bound = longest_seconds(delays=DELAYS, jitter=JITTER, lease=LEASE, nudge=NUDGE, sweep=SWEEP)
    assert longest(stream.pk) < bound + kills * RESTART_SECONDS


def test_the_manual_contains_the_longest_time_of_a_delivery_with_the_default_settings() -> None:
    seconds = longest_seconds(delays=(1, 5, 30, 120, 600, 1800), jitter=0.2, lease=45.0, nudge=30.0, sweep=2.0)
    assert tuple(settings.DELIVERY_RETRY_DELAYS) == (1, 5, 30, 120, 600, 1800)
    assert f"{seconds / 60:.0f} minutes" in (Path(settings.BASE_DIR) / "docs" / "guarantees.md").read_text()
