"""How PostgreSQL runs a statement: the nodes of the plan, and the number of rows that the statement reads and discards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction

# Make PostgreSQL use indexes. Otherwise it would scan or sort the small tables of tests, although it would use an index for a large table.
_INDEXES = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"


def plan_of(statement: str, values: Mapping[str, Any] | Sequence[Any], *, analyzed: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Run a statement with indexes where possible, roll it back, and return the nodes of its plan.

    Before the statement, ANALYZE renews the statistics of the tables in `analyzed`. The rollback also restores the old statistics.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_INDEXES)
        for table in analyzed:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
        plan = cursor.fetchone()[0][0]["Plan"]
        transaction.set_rollback(True)
    return list(_nodes(plan))


def read_in_vain(statement: str, values: Mapping[str, Any] | Sequence[Any], *, table: str) -> int:
    """Return the number of rows of `table` that the statement reads and then filters out. Fail if the statement does not read the table.

    First, renew the statistics of the table. With old statistics, PostgreSQL could choose an index that is meant for another query.
    """
    plan = plan_of(statement, values, analyzed=[table])
    nodes = [node for node in plan if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable"]
    assert nodes
    return sum(round(node.get("Rows Removed by Filter", 0) * node["Actual Loops"]) for node in nodes)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
