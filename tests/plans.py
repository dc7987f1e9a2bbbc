"""How PostgreSQL runs a statement: the conditions that an index answers, and the rows that it reads in vain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction

# Small tables of tests: without these settings, PostgreSQL scans or sorts them instead of using the index that a large table needs.
_INDEXES = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"


def plan_of(statement: str, values: Mapping[str, Any] | Sequence[Any], *, analyzed: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Run a statement with indexes if possible, undo it, and return the nodes of its plan.

    The statistics of the tables `analyzed` are renewed for the plan, and restored with the end of the transaction.
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
    """Return the number of rows of a table that the statement reads and then leaves out. It must read the table.

    With statistics from before the test, PostgreSQL could choose an index for another order.
    """
    plan = plan_of(statement, values, analyzed=[table])
    nodes = [node for node in plan if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable"]
    assert nodes
    return sum(round(node.get("Rows Removed by Filter", 0) * node["Actual Loops"]) for node in nodes)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
