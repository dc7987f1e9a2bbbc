"""Prunes events that are older than their tenant's retention: one transaction raises the floor and deletes the rows below it.

Locks are taken in one order: first the tenant's pruning lock, then log rows and events, last the head row, which is updated just before the
commit. The pruning lock is an advisory lock that prevents two runs at the same time. Numbering locks the head row and then inserts
positions that pruning never touches. So a pruning transaction delays numbering only between its update of the head row and its commit. No
deadlock is possible. Writers of events take none of these locks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db import connection, transaction

from events.hooks import Hold, followers
from foundation import failpoints
from identity.stopped_tenants import STOPPED_TENANTS

logger = logging.getLogger(__name__)

CHUNK = 5000
_DAY = 86400.0
_ADVISORY_CLASS = 0x70727565  # Namespace of the advisory locks of pruning; no other code uses this number.

# The newest expired position of each tenant. Tenants without an expired position are left out. Recording times never decrease, so every
# earlier position has expired, too. The query uses the earlier of two times, that of the database and that of this process, so that one
# fast clock cannot empty the logs. With `clock_timestamp()`, PostgreSQL could not use the index for the condition, and would read all
# positions that have not expired.
_DUE = f"""
SELECT h.tenant_id, h.floor, due.position
FROM events_head h LEFT JOIN identity_tenant t ON t.id = h.tenant_id
CROSS JOIN LATERAL (
    SELECT l.position FROM events_logentry l
    WHERE l.tenant_id = h.tenant_id AND l.position <= h.position
        AND l.recorded_at < least(statement_timestamp(), %(now)s)
            - make_interval(secs => coalesce(t.event_retention_days::double precision * %(day)s, %(default)s))
    ORDER BY l.recorded_at DESC, l.position DESC LIMIT 1
) due
WHERE (%(tenant)s::text IS NULL OR h.tenant_id = %(tenant)s) AND h.tenant_id NOT IN ({STOPPED_TENANTS}) ORDER BY h.tenant_id
"""  # noqa: S608  (a constant)
_LOCK = "SELECT pg_try_advisory_xact_lock(%(class)s, hashtext(%(tenant)s))"
_FLOOR = "SELECT floor FROM events_head WHERE tenant_id = %(tenant)s"
_DROP = """
WITH dropped AS (
    DELETE FROM events_logentry WHERE tenant_id = %(tenant)s AND position > %(after)s AND position <= %(last)s
    RETURNING event_id, recorded_at
), bodies AS (DELETE FROM events_event WHERE id IN (SELECT event_id FROM dropped))
SELECT count(*), max(recorded_at) FROM dropped
"""
_RAISE_FLOOR = """
UPDATE events_head SET floor = %(last)s, floor_recorded_at = coalesce(%(recorded_at)s, floor_recorded_at) WHERE tenant_id = %(tenant)s
"""

Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class DueLog:
    """A log with expired positions: the positions after `floor`, up to and including `through`."""

    tenant_id: str
    floor: int
    through: int


@dataclass(frozen=True)
class Pruned:
    """The result for one log: the number of pruned positions, and the number of expired positions that are kept because of holds."""

    tenant_id: str
    count: int
    held_back: int = 0
    holds: Sequence[Hold] = ()
    is_busy: bool = False  # Another run prunes this log.

    def told(self) -> str:
        """Return a sentence with the number of positions that are held back, and with the holders."""
        holders = "; ".join(f"{hold.holder} at {hold.position:,}" for hold in self.holds)
        return f"{self.tenant_id}: {self.held_back:,} positions are kept beyond their retention for {holders}"


def prune(tenant_id: str | None = None, *, is_dry_run: bool = False, progress: Progress | None = None) -> Iterator[Pruned]:
    """Prune one tenant's log, or all logs one after another, and yield each result. The caller may stop at any time.

    A dry run only counts the positions that would be pruned.
    """
    for due in due_logs(tenant_id):
        done = prune_log(due, is_dry_run=is_dry_run, progress=progress)
        if done.held_back:
            logger.warning("%s", done.told())
        yield done


def due_logs(tenant_id: str | None = None, *, now: datetime | None = None) -> list[DueLog]:
    """Return the logs with positions to prune."""
    values = {"tenant": tenant_id, "now": now or datetime.now(UTC), "day": _DAY, "default": settings.EVENTS_RETENTION_DAYS * _DAY}
    with connection.cursor() as cursor:
        cursor.execute(_DUE, values)
        return [DueLog(*row) for row in cursor.fetchall()]


def prune_log(due: DueLog, *, is_dry_run: bool = False, progress: Progress | None = None) -> Pruned:
    """Prune the expired positions that no hold keeps, at most 5,000 in each transaction.

    1. Let followers copy the events of their waiting work.
    2. Ask followers once for their holds; `LogFollower` promises that the holds stay valid.
    3. Prune chunk after chunk, up to the lowest hold.
    """
    if not is_dry_run:
        for follower in followers():
            follower.make_way(due.tenant_id, through=due.through)
    holds = _holds(due, is_dry_run=is_dry_run)
    last = max(min([due.through, *(hold.position for hold in holds)]), due.floor)
    if is_dry_run:
        return Pruned(due.tenant_id, last - due.floor, due.through - last, holds)
    count, floor = 0, due.floor
    while floor < last:
        dropped = _drop_chunk(due.tenant_id, last)
        if dropped is None:
            return Pruned(due.tenant_id, count, is_busy=True)
        floor, rows = dropped
        count += rows
        if progress is not None:
            progress(due.tenant_id, rows)
    return Pruned(due.tenant_id, count, due.through - last, holds)


def _holds(due: DueLog, *, is_dry_run: bool) -> list[Hold]:
    holds = [hold for follower in followers() for hold in follower.holds(due.tenant_id, through=due.through)]
    return sorted(hold for hold in holds if hold.position < due.through and not (is_dry_run and hold.does_yield))


def _drop_chunk(tenant_id: str, last: int) -> tuple[int, int] | None:
    """Prune the next chunk up to `last`; return the new floor and the number of rows, or None while another run holds the lock."""
    values: dict[str, int | str] = {"class": _ADVISORY_CLASS, "tenant": tenant_id}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, values)
        if not cursor.fetchone()[0]:
            return None
        # Read the floor in a separate statement, after the lock is taken: then the floor is the one that the previous run has committed.
        cursor.execute(_FLOOR, values)
        row = cursor.fetchone()
        if row is None or row[0] >= last:
            return last, 0
        chunk_end = min(row[0] + CHUNK, last)
        cursor.execute(_DROP, {**values, "after": row[0], "last": chunk_end})
        count, recorded_at = cursor.fetchone()
        failpoints.reach("pruning")
        cursor.execute(_RAISE_FLOOR, {**values, "last": chunk_end, "recorded_at": recorded_at})
        if count != chunk_end - row[0]:
            logger.error("the log of %s had only %s of %s positions after %s", tenant_id, count, chunk_end - row[0], row[0])
    failpoints.reach("pruned")
    return chunk_end, count
