"""Counts attempts per stream for the metrics. Each worker process counts in memory. Its sweeper thread adds the counts to the database.

Workers have no port for metrics, so they store their counts in the database. One statement stores all counts of a process, for any number
of streams. If a worker is killed, its counts of the last seconds are lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from threading import Lock

from django.db import Error as DatabaseError

from foundation.database.statements import execute
from provisioning.actions.pace import NoTurn
from provisioning.runs.outcomes import Claim, Failure, Success

# Upper bounds of the buckets of durations, in seconds. An attempt ends after DELIVERY_BUDGET_SECONDS at the latest.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SUM_NAME = "milliseconds"
BUCKET_NAMES = (*(f"le {bound:g}" for bound in BOUNDS), "le +Inf")

# Writes rows in the order of the unique constraint, so that two processes cannot deadlock. A stream that was deleted meanwhile gets no row.
_ADD = """
INSERT INTO provisioning_streamtally (stream_id, tenant_id, name, count)
SELECT s.id, s.tenant_id, noted.name, noted.count
FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS noted (stream_id, name, count) JOIN events_eventstream s ON s.id = noted.stream_id
ORDER BY s.id, noted.name
ON CONFLICT (stream_id, name) DO UPDATE SET count = provisioning_streamtally.count + EXCLUDED.count
"""
_noted: Counter[tuple[str, str]] = Counter()
_lock = Lock()


def kind_of(result: Success | Failure | NoTurn) -> str:
    """Return the name of a result in counts and traces: `delivered`, `skipped`, `put off` (only in traces), or the class of the failure."""
    if isinstance(result, NoTurn):
        return "put off"
    return result.error_class if isinstance(result, Failure) else "skipped" if result.is_skipped else "delivered"


def note(claim: Claim, result: Success | Failure | NoTurn) -> None:
    """Count an attempt that ran, by its result and its duration."""
    if isinstance(result, NoTurn):
        return
    kind = kind_of(result)
    # The duration is None only if the attempt failed before the action ran.
    milliseconds = result.duration_ms or 0.0
    bucket = BUCKET_NAMES[bisect_left(BOUNDS, milliseconds / 1000)]
    with _lock:
        _noted[claim.stream_id, kind] += 1
        _noted[claim.stream_id, bucket] += 1
        _noted[claim.stream_id, SUM_NAME] += round(milliseconds)


def flush() -> None:
    """Add the counts of this process to the counts in the database. Keeps the counts of this process if the database fails."""
    with _lock:
        taken = dict(_noted)
        _noted.clear()
    if not taken:
        return
    try:
        execute(_ADD, [[stream for stream, _ in taken], [name for _, name in taken], list(taken.values())])
    except (DatabaseError, OSError):
        with _lock:
            _noted.update(taken)
        raise
