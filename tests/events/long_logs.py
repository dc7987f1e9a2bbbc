"""Logs of a given age, for tests of pruning. The rows are written directly, without the recorder or the numberer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection, transaction

from events.models import Head

_FILL = """
WITH made AS (
    INSERT INTO events_event (event_id, tenant_id, type, root, time, body)
    SELECT left(md5(%(tenant)s || n::text), 26), %(tenant)s, 'user.updated', 'user:' || n %% 7, %(recorded_at)s,
        convert_to('{"n":' || n || ',"x":"' || repeat('x', %(size)s) || '"}', 'UTF8')
    FROM generate_series(%(first)s::bigint, %(last)s) n ORDER BY n
    RETURNING id
)
INSERT INTO events_logentry (tenant_id, position, event_id, recorded_at)
SELECT %(tenant)s, %(first)s - 1 + row_number() OVER (ORDER BY id), id, %(recorded_at)s FROM made
"""


def fill_log(tenant_id: str, count: int, *, recorded_at: datetime, size: int = 10) -> int:
    """Append `count` events, all recorded at the given time. Return the new head."""
    with transaction.atomic(), connection.cursor() as cursor:
        head = Head.objects.select_for_update().get(pk=tenant_id)
        values: dict[str, Any] = {
            "tenant": tenant_id,
            "first": head.position + 1,
            "last": head.position + count,
            "recorded_at": recorded_at,
            "size": size,
        }
        cursor.execute(_FILL, values)
        head.position += count
        head.recorded_at = max(head.recorded_at, recorded_at)
        head.save(update_fields=["position", "recorded_at"])
    return head.position


def remaining(tenant_id: str) -> tuple[int, int, list[int], int]:
    """Return the floor, the head, the positions in the log, and the number of bodies, from one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT floor, position, ARRAY(SELECT position FROM events_logentry l WHERE l.tenant_id = h.tenant_id ORDER BY position),"
            " (SELECT count(*) FROM events_event e WHERE e.tenant_id = h.tenant_id) FROM events_head h WHERE tenant_id = %s",
            [tenant_id],
        )
        floor, head, positions, bodies = cursor.fetchone()
    return floor, head, positions, bodies
