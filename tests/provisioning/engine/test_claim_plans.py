"""What a claim reads does not grow with what waits beside it, whatever the planner has last seen of the tables."""

from __future__ import annotations

from typing import Any

from django.db import connection

from events.models import EventStream
from foundation.database.statements import Prepared
from identity.models import Tenant
from provisioning.engine import delivery_rows, dispatch, lane_rows, lanes
from provisioning.runs.outcomes import Claim, Success
from tests.provisioning.engine.logs import append_events

WAITING = 1500
# Some ten rows in five tables with their indexes; each waiting delivery that is read besides costs two more.
MOST_BLOCKS = 200


def blocks_of(statement: Prepared, values: dict[str, Any]) -> int:
    """Run the statement as workers run it, and return how many blocks it has touched."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.call}", values)
        plan = cursor.fetchone()[0][0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def test_settling_and_claiming_read_their_own_lane_though_the_statistics_are_from_a_quiet_hour(tenant: Tenant, stream: EventStream) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE provisioning_delivery, provisioning_lane, events_event, events_logentry")
        # Not of a quiet hour: a connection that planned when there were a few streams would go on reading all of them.
        cursor.execute("ANALYZE events_eventstream")
    append_events(tenant, [f"user:{number % 750}" for number in range(WAITING)])
    dispatch.dispatch_tenant(tenant.pk)
    first = lanes.claim_oldest(stream.pk)
    assert isinstance(first, Claim)
    success = Success(is_skipped=False, is_written=True, duration_ms=1.0)
    claim = lanes.settle(first, success, go_on=True).next
    assert isinstance(claim, Claim)

    values = {**delivery_rows.success_values(claim, success), "lease": 45.0, "most": 7, "probe": False}
    read = [blocks_of(statement, values) for statement in (delivery_rows.SETTLE, lane_rows.DROP_IF_SETTLED, lane_rows.TAKE_NEXT)]

    assert max(read) < MOST_BLOCKS, read
