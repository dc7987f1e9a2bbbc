"""Writes spans for steps that handle several events of a log at once. Used only while tracing is on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from django.db import Error as DatabaseError

from foundation.tracing import spans as tracing

logger = logging.getLogger(__name__)

# The maximum number of spans of one step. An import records thousands of events in one trace, too many for the programs that show traces.
_MOST = 200
_TRACED = """
SELECT e.event_id, e.type, e.trace, l.position FROM events_logentry l JOIN events_event e ON e.id = l.event_id
WHERE l.tenant_id = %s AND l.position > %s AND l.position <= %s AND e.trace IS NOT NULL AND (%s::text[] IS NULL OR e.type = ANY(%s))
ORDER BY l.position LIMIT %s
"""


class Database(Protocol):
    """A connection of psycopg or of Django."""

    def cursor(self) -> Any: ...


@dataclass(frozen=True)
class LogRange:
    """The positions of a log after `after`, up to `through`."""

    tenant_id: str
    after: int
    through: int


def note_events(
    database: Database, numbers: LogRange, name: str, *, began_ns: int, types: Sequence[str] | None = None, **attributes: str
) -> None:
    """Record the step in the traces of the first 200 events of the range that have a trace.

    Never raises, because the step itself has succeeded.
    """
    wanted = None if types is None else list(types)
    try:
        with database.cursor() as cursor:
            cursor.execute(_TRACED, [numbers.tenant_id, numbers.after, numbers.through, wanted, wanted, _MOST])
            rows = cursor.fetchall()
    except (psycopg.Error, DatabaseError) as error:
        logger.warning("the traces of a step were not read: %s", type(error).__name__)
        return
    for event_id, event_type, trace, position in rows:
        ids = {"tenant.id": numbers.tenant_id, "event.id": event_id, "event.type": event_type, "log.position": position}
        tracing.note_step(bytes(trace), name, began_ns=began_ns, **ids, **attributes)
