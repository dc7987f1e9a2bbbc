"""The number of database blocks that a claim reads does not grow with other waiting deliveries.

This must be true for any statistics of the tables, from which PostgreSQL chooses the query plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction

from events.models import EventStream
from foundation.database.statements import execute, forget_plans
from identity.models import Tenant
from provisioning.engine import delivery_rows, dispatch, lane_rows, lanes
from provisioning.runs.outcomes import Claim, Success
from tests.provisioning.engine.logs import append_events

WAITING = 800
KEYS = 400
OTHERS = 2000
# The maximum number of blocks that a statement may read. About ten rows of five tables, with their indexes, need 20 to 70 blocks, and each
# further row one or two blocks. Reading all lanes would need 400 to 800 blocks, and reading all deliveries 800 to 1,600.
MOST_BLOCKS = 200
PLANS = ("force_generic_plan", "force_custom_plan")
TABLES = (
    "provisioning_lane",
    "provisioning_delivery",
    "provisioning_attempt",
    "provisioning_deadletter",
    "events_event",
    "events_eventstream",
)

_OTHER_LANES = """
INSERT INTO provisioning_lane (stream_id, key, tenant_id) SELECT 'other-' || n %% %(streams)s, 'user:' || n, 'other'
FROM generate_series(1, %(rows)s) n
"""
_PAUSED_LANES = """
INSERT INTO provisioning_lane (stream_id, key, tenant_id, not_before)
SELECT %(stream)s, 'user:paused-' || n, 'other', now() + interval '1 hour' FROM generate_series(1, %(rows)s) n
"""
_OTHER_DELIVERIES = """
INSERT INTO provisioning_delivery (stream_id, tenant_id, key, position, event, event_id, event_type, state, is_written, attempts,
    series_attempts, redeliveries, is_forced, reason, detail, error_class, error_scim_type, error_message, error_fingerprint)
SELECT 'other-' || n %% %(streams)s, 'other', 'user:' || n %% %(keys)s, n, least.event - n, 'evt_other', 'user.updated', %(state)s,
    %(state)s = 'delivered', 1, 1, 0, false, '', '{}', '', '', '', ''
FROM generate_series(1, %(rows)s) n, (SELECT least(min(event), 0) AS event FROM provisioning_delivery) least
"""
# Sets the numbers of rows and pages that PostgreSQL has recorded for the tables and indexes.
_STATISTICS_BY_HAND = """
UPDATE pg_class SET reltuples = %(rows)s, relpages = %(pages)s WHERE oid IN (
    SELECT unnest(ARRAY[c.oid, i.indexrelid]) FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid WHERE c.relname = ANY(%(tables)s))
"""


def other_lanes(*, streams: int) -> None:
    execute(_OTHER_LANES, {"streams": streams, "rows": OTHERS})


def other_deliveries(*, streams: int, keys: int, state: str = "todo") -> None:
    execute(_OTHER_DELIVERIES, {"streams": streams, "keys": keys, "state": state, "rows": OTHERS})


def drop_everything() -> None:
    """Delete all lanes and deliveries, so that the tables contain only dead rows."""
    execute("DELETE FROM provisioning_lane")
    execute("DELETE FROM provisioning_delivery")


def nothing() -> None:
    """Change nothing."""


def one_lane_with_everything() -> None:
    other_lanes(streams=1)
    other_deliveries(streams=1, keys=1)


def a_row_for_each_stream() -> None:
    other_lanes(streams=OTHERS)
    other_deliveries(streams=OTHERS, keys=OTHERS)


def a_lane_for_each_delivery() -> None:
    other_lanes(streams=1)
    other_deliveries(streams=1, keys=OTHERS)


def lanes_without_deliveries() -> None:
    drop_everything()
    other_lanes(streams=3)


def deliveries_without_lanes() -> None:
    drop_everything()
    other_deliveries(streams=3, keys=OTHERS)


def settled_deliveries() -> None:
    drop_everything()
    other_deliveries(streams=3, keys=5, state="delivered")


@dataclass(frozen=True)
class ByHand:
    """Sets the numbers of rows and pages that `pg_class` contains for every table and index.

    To estimate the rows of a table, the planner divides the recorded `rows` by the recorded `pages`, and multiplies the result by the real
    number of pages.
    """

    rows: int
    pages: int

    def __call__(self) -> None:
        execute(_STATISTICS_BY_HAND, {"rows": self.rows, "pages": self.pages, "tables": list(TABLES)})


ANALYZED = [
    nothing,
    drop_everything,
    one_lane_with_everything,
    a_row_for_each_stream,
    a_lane_for_each_delivery,
    lanes_without_deliveries,
    deliveries_without_lanes,
    settled_deliveries,
]
BY_HAND = [ByHand(-1, 0), ByHand(0, 0), ByHand(0, 1000), ByHand(1, 1000), ByHand(40, 1000), ByHand(1_000_000, 1)]


def add_paused_lanes(claim: Claim) -> None:
    execute(_PAUSED_LANES, {"stream": claim.stream_id, "rows": OTHERS})


def redeliver_everything(claim: Claim) -> None:
    execute("UPDATE provisioning_delivery SET redeliveries = 1 WHERE stream_id = %s", [claim.stream_id])
    other_deliveries(streams=1, keys=OTHERS, state="delivered")


def go_on(claim: Claim) -> None:
    """Change nothing."""


@pytest.fixture
def unkept(committed_db: None) -> Iterator[None]:
    """Run the test in a transaction and roll it back, with all rows, dead rows and column statistics of the test."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    # Run ANALYZE again, because the rollback does not restore the table sizes in `pg_class`.
    execute(f"ANALYZE {', '.join(TABLES)}")


def queue(tenant: Tenant, stream: EventStream, *, keys: int = KEYS) -> Claim:
    """Create `WAITING` deliveries in `keys` lanes, settle one delivery, and return the claim of the next delivery."""
    append_events(tenant, [f"user:{number % keys}" for number in range(WAITING)])
    dispatch.dispatch_tenant(tenant.pk)
    first = lanes.claim_oldest(stream.pk)
    assert isinstance(first, Claim)
    claim = lanes.settle(first, Success(is_skipped=False, is_written=True, duration_ms=1.0), go_on=True).next
    assert isinstance(claim, Claim)
    return claim


def large_reads(claim: Claim) -> dict[str, int]:
    """Return each statement that reads too many blocks, with their number. The key is the kind of plan with the name of the statement."""
    return {name: blocks for name, blocks in blocks_read(claim).items() if blocks >= MOST_BLOCKS}


def blocks_read(claim: Claim) -> dict[str, int]:
    """Run the statements of a claim, and return the number of blocks that each statement reads."""
    success = Success(is_skipped=False, is_written=True, duration_ms=1.0)
    values = {**delivery_rows.success_values(claim, success), "lease": 45.0, "most": 7, "probe": False}
    read = {}
    for plan in PLANS:
        with transaction.atomic():
            forget_plans()
            execute(f"SET LOCAL plan_cache_mode = {plan}")
            for prepared in (delivery_rows.SETTLE, lane_rows.DROP_IF_SETTLED, lane_rows.TAKE_NEXT):
                read[f"{plan} {prepared.name}"] = blocks_of(prepared.call, values)
            transaction.set_rollback(True)
    with transaction.atomic():
        read["oldest"] = blocks_of(lane_rows.TAKE_OLDEST, values)
        read["named"] = blocks_of(lane_rows.LOCK_NAMED, {"stream": claim.stream_id, "key": claim.key})
        read["this"] = blocks_of(lane_rows.TAKE_THIS, values)
        read["due"] = blocks_of(lane_rows.DUE_KEY, values)
        read["drop"] = blocks_of(lane_rows.DROP_IF_EMPTY, values)
        transaction.set_rollback(True)
    return read


def blocks_of(statement: str, values: dict[str, Any]) -> int:
    """Run the statement as a worker does, and return the number of blocks that it reads."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values)
        plan = cursor.fetchone()[0][0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.parametrize("are_dead", [False, True], ids=["beside", "dead"])
@pytest.mark.parametrize("others", ANALYZED, ids=lambda others: others.__name__)
def test_a_claim_reads_only_its_lane_if_the_tables_were_analyzed_with_other_rows(
    tenant: Tenant, stream: EventStream, unkept: None, others: Callable[[], None], are_dead: bool
) -> None:
    others()
    execute(f"ANALYZE {', '.join(TABLES)}")
    if are_dead:
        drop_everything()

    assert not large_reads(queue(tenant, stream))


@pytest.mark.parametrize("others", [nothing, one_lane_with_everything, a_row_for_each_stream], ids=lambda others: others.__name__)
def test_a_claim_reads_only_its_lane_if_the_recorded_table_sizes_are_wrong(
    tenant: Tenant, stream: EventStream, unkept: None, others: Callable[[], None]
) -> None:
    others()
    execute(f"ANALYZE {', '.join(TABLES)}")
    claim = queue(tenant, stream)

    for sizes in BY_HAND:
        sizes()
        assert not large_reads(claim), sizes


@pytest.mark.parametrize("stand", [add_paused_lanes, redeliver_everything, go_on], ids=lambda stand: stand.__name__)
@pytest.mark.parametrize("keys", [1, KEYS])
@pytest.mark.parametrize("others", [drop_everything, a_row_for_each_stream], ids=lambda others: others.__name__)
def test_a_claim_reads_only_its_lane_for_any_state_of_the_other_lanes(
    tenant: Tenant, stream: EventStream, unkept: None, others: Callable[[], None], keys: int, stand: Callable[[Claim], None]
) -> None:
    others()
    execute(f"ANALYZE {', '.join(TABLES)}")
    claim = queue(tenant, stream, keys=keys)
    stand(claim)

    assert not large_reads(claim)
