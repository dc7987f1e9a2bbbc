"""Starts a new epoch of logs after the database was restored, perhaps to an earlier state. Decision: docs/adr/0043.

In a new epoch, requests with earlier cursors get 410. Positions beyond the restored head are assigned a second time, so a client with an
earlier cursor would miss the new events at these positions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from events.hooks import followers
from events.log.epochs import NEXT_EPOCH

logger = logging.getLogger(__name__)

_LOGS = """
SELECT h.tenant_id, h.floor, h.position, h.recorded_at::text, (
    SELECT max(l.position) FROM events_logentry l WHERE l.tenant_id = h.tenant_id
) FROM events_head h WHERE (%(tenant)s::text IS NULL OR h.tenant_id = %(tenant)s) ORDER BY h.tenant_id
"""
_LOCK = "SELECT position FROM events_head WHERE tenant_id = %(tenant)s FOR UPDATE"
_RAISE = f"UPDATE events_head SET epoch = {NEXT_EPOCH} WHERE tenant_id = %(tenant)s RETURNING epoch"  # noqa: S608  (a constant)


@dataclass(frozen=True)
class LogState:
    """The bounds of a log in the restored database, and the position of its last entry."""

    tenant_id: str
    floor: int
    head: int
    recorded_at: str
    last_entry: int | None

    @property
    def is_whole(self) -> bool:
        """Tell whether head and entries are consistent; if they are not, numbering fails or readers find a missing position."""
        return self.head == (self.floor if self.last_entry is None else self.last_entry)

    @property
    def effects(self) -> Sequence[str]:
        """Return the effects of a new epoch on the apps that read the log, one sentence for each effect."""
        return [told for follower in followers() for told in follower.beyond(self.tenant_id, head=self.head)]


def log_states(tenant_id: str | None = None) -> list[LogState]:
    """Return the state of one tenant's log, or of all logs."""
    with connection.cursor() as cursor:
        cursor.execute(_LOGS, {"tenant": tenant_id})
        return [LogState(*row) for row in cursor.fetchall()]


def start_over(tenant_id: str) -> int | None:
    """Begin a new epoch of the log and reset every reader of the log (`LogFollower`) beyond the head, in one transaction.

    An event stream whose position is at or below the head keeps this position, because it was restored together with the log. Returns the
    new epoch, or None if the tenant has no log. Running processes notice the new epoch within a second and close the tenant's streams.
    """
    values = {"tenant": tenant_id}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, values)
        head = cursor.fetchone()
        if head is None:
            return None
        for follower in followers():
            follower.step_back(tenant_id, head=head[0])
        cursor.execute(_RAISE, values)
        epoch: int = cursor.fetchone()[0]
    logger.critical("the log of %s was started over in epoch %s: requests with older cursors get 410", tenant_id, epoch)
    return epoch
