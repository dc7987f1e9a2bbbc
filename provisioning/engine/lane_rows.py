"""SQL statements of `provisioning.engine.lanes`. They run in the transaction of the caller.

The lane's row is the lock of all deliveries in the lane. After the lock was granted, use a separate statement to decide whether the lane is
empty: only the snapshot of this later statement includes deliveries that a dispatch committed during the wait for the lock. The statement
that locks the lane may also claim a waiting delivery: the claim reads the newest version of the delivery's row, and only the owner of the
lock settles the delivery.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foundation.database.statements import Prepared, Row, execute, fetch_all, fetch_one, row_as
from identity.stopped_tenants import STOPPED_TENANTS
from provisioning.runs.outcomes import Claim

_LOCK_CLAIMED = """
SELECT 1 FROM provisioning_lane WHERE id = %s AND token = %s AND lease_until > clock_timestamp() FOR UPDATE
"""

# Rules for the statements of a claim. Statistics may be outdated, and a plan based on outdated statistics could read all waiting rows for
# each claim. The statements therefore leave the planner few choices:
# - Look up a row by a key from a subquery, or in a LATERAL subquery with a limit. For a plain join, PostgreSQL may hash the whole
#   other table, or scan an index of that table from its first row.
# - To read the first row of a stream or a lane, join with `_MANY` (ten rows) before the limit. If the planner expects one row, it may
#   choose any index on the stream and sort the rows. With the join it expects ten rows, of which the limit needs one. So it estimates a
#   tenth of the cost for the index that returns the rows in order, and chooses this index.
# - Look up a row of a large table by every column of each index that contains its key: if the planner assumes an empty table, it
#   may scan an index in which the key follows another column.
# - If the planner must not use an index for a condition, write an expression instead of the column, such as `state || ''`.
_MANY = "CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) many"
_IS_RUNNING = f"NOT EXISTS ({STOPPED_TENANTS} AND id = s.tenant_id)"
_DELIVERING = f"""
SELECT s.id, s.destination_type, s.destination FROM events_eventstream s
WHERE s.status = 'enabled' AND (s.held_since IS NULL OR %(probe)s) AND {_IS_RUNNING}
"""  # noqa: S608  (constants)
_STREAM = f"{_DELIVERING} AND s.id = %(stream)s"
_STREAM_OF_LANE = f"{_DELIVERING} AND s.id = (SELECT lane.stream_id FROM lane)"  # noqa: S608
# Uses `provisioning_lane_by_due`, whose last column is `id + 0`. The time is a subquery, which PostgreSQL can use as an index condition,
# so that the scan excludes pausing lanes.
_FIRST_DUE = f"""
SELECT l.id, l.stream_id, l.key, l.tenant_id, l.token, l.delivery_id FROM provisioning_lane l {_MANY}
WHERE l.stream_id = s.id AND l.not_before <= (SELECT CASE WHEN %(probe)s THEN 'infinity' ELSE clock_timestamp() END)
    AND (l.lease_until IS NULL OR l.lease_until <= clock_timestamp())
ORDER BY l.not_before, l.id + 0 LIMIT 1
"""  # noqa: S608  (constants of this module)
# Uses `provisioning_delivery_waiting`.
_FIRST_WAITING = f"""
FROM provisioning_delivery d {_MANY}
WHERE d.stream_id = lane.stream_id AND d.key = lane.key AND d.state = 'todo' ORDER BY d.position LIMIT 1
"""
# Waits for the lock instead of skipping a locked lane. Transactions hold the lock for milliseconds only, but a skipped lane would have to
# wait for the sweeper.
LOCK_NAMED = f"""
SELECT l.id, l.token IS NOT NULL AS is_leased, s.status = 'enabled' AND s.held_since IS NULL AND {_IS_RUNNING} AS is_delivering,
    extract(epoch FROM greatest(l.not_before, coalesce(l.lease_until, l.not_before)) - clock_timestamp())::float8 AS due_in
FROM provisioning_lane l {_MANY} JOIN events_eventstream s ON s.id = l.stream_id
WHERE l.stream_id = %(stream)s AND l.key BETWEEN %(key)s AND %(key)s ORDER BY l.key LIMIT 1 FOR UPDATE OF l
"""  # noqa: S608
_THIS_LANE = "SELECT id, stream_id, key, tenant_id, token, delivery_id FROM provisioning_lane WHERE id = %(lane)s"
_OLDEST_LANE = f"SELECT due.* FROM stream s CROSS JOIN LATERAL ({_FIRST_DUE} FOR UPDATE OF l SKIP LOCKED) due"  # noqa: S608
DUE_KEY = f"SELECT due.key FROM ({_STREAM}) s CROSS JOIN LATERAL ({_FIRST_DUE}) due"  # noqa: S608
# One index lookup per enabled stream. Only a process that has used up a whole turn runs this query.
WAITING_STREAMS = f"""
SELECT s.id, due.key FROM ({_DELIVERING}) s CROSS JOIN LATERAL (
    SELECT first.key, (SELECT lane.not_before FROM provisioning_lane lane WHERE lane.id = first.id) FROM ({_FIRST_DUE}) first
) due WHERE due.not_before < clock_timestamp() - make_interval(secs => %(patience)s) ORDER BY due.not_before, s.id
"""  # noqa: S608  (constants of this module)
# The lane of the claim if this lane still exists, otherwise the lane that has been due longest. This transaction has settled the claim, and
# still has the lock of the claim's lane.
_NEXT_LANE = f"""
WITH this AS (
    SELECT id, stream_id, key, tenant_id, NULL::uuid AS token, NULL::bigint AS delivery_id FROM provisioning_lane
    WHERE id = %(lane)s AND token = %(token)s AND lease_until > clock_timestamp()
), oldest AS ({_OLDEST_LANE} WHERE NOT EXISTS (SELECT 1 FROM this))
SELECT * FROM this UNION ALL SELECT * FROM oldest
"""  # noqa: S608
# Makes a claim in one statement: finds the first waiting delivery of `lane` in `stream`, unless this delivery must not run; counts the
# attempt before it starts, so that a crash is counted; sets a new token and lease; and stores the lost attempt of an expired claim. Another
# worker may settle the delivery after the statement took its snapshot and before it got the lock. Therefore the attempt is counted only if
# the delivery still waits in the newest version of its row, and without a counted attempt there is no claim.
_CLAIM = f"""
waiting AS (
    SELECT d.id, d.event_id, d.event_type, coalesce(letter.rebuilt_position, d.position) AS position,
        d.redeliveries > 0 AS is_redelivery, clock_timestamp() AS now,
        coalesce(letter.rebuilt_body, e.body, letter.body) AS body, e.trace, letter.rebuilt_body IS NOT NULL AS is_rebuilt,
        s.destination_type, s.destination,
        d.redeliveries > 0 AND NOT d.is_forced AND letter.rebuilt_body IS NULL AND (
            SELECT true FROM provisioning_delivery n {_MANY}
            WHERE n.stream_id = d.stream_id AND n.key = d.key AND n.position > d.position AND n.is_written ORDER BY n.position LIMIT 1
        ) IS NOT NULL AS is_superseded
    FROM lane CROSS JOIN stream s
    CROSS JOIN LATERAL (
        SELECT d.id, d.stream_id, d.tenant_id, d.key, d.position, d.event, d.event_id, d.event_type, d.redeliveries, d.is_forced
        {_FIRST_WAITING}
    ) d
    LEFT JOIN LATERAL (
        SELECT e.body, e.trace FROM events_event e
        WHERE e.id = d.event AND e.tenant_id = d.tenant_id AND e.root = d.key AND e.type = d.event_type LIMIT 1
    ) e ON true
    LEFT JOIN LATERAL (
        SELECT l.body, l.rebuilt_body, l.rebuilt_position FROM provisioning_deadletter l WHERE l.delivery_id = d.id LIMIT 1
    ) letter ON true
),
lost AS (
    INSERT INTO provisioning_attempt (delivery_id, tenant_id, number, trigger, started_at, outcome, error_class, error_scim_type,
        error_message, exchanges, log_lines)
    SELECT d.id, d.tenant_id, d.attempts, 'scheduled', d.last_attempt_at, 'lost', 'lost', '', 'the worker ended during the attempt',
        '[]', '[]'
    FROM provisioning_delivery d
    WHERE d.id = (SELECT lane.delivery_id FROM lane WHERE lane.token IS NOT NULL) AND d.tenant_id = (SELECT lane.tenant_id FROM lane)
    ON CONFLICT (delivery_id, number) DO NOTHING
),
counted AS (
    UPDATE provisioning_delivery d SET attempts = d.attempts + 1, series_attempts = d.series_attempts + 1,
        last_attempt_at = w.now, first_attempt_at = coalesce(d.first_attempt_at, w.now)
    FROM waiting w
    WHERE d.id = (SELECT id FROM waiting WHERE NOT is_superseded AND body IS NOT NULL)
        AND d.tenant_id = (SELECT lane.tenant_id FROM lane) AND d.state || '' = 'todo' AND d.series_attempts < %(most)s
    RETURNING d.id, d.attempts, d.series_attempts
),
claimed AS (
    UPDATE provisioning_lane l SET token = gen_random_uuid(), delivery_id = counted.id, nudged_until = NULL,
        lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
    FROM counted WHERE l.id = (SELECT lane.id FROM lane)
    RETURNING l.token, counted.attempts, counted.series_attempts
)
SELECT lane.id AS lane_id, claimed.token, lane.stream_id, lane.tenant_id, lane.key, w.destination_type, w.destination, w.id AS delivery_id,
    w.event_id, w.event_type, w.body, claimed.attempts AS attempt, claimed.series_attempts AS series_attempt, w.is_redelivery,
    w.now AS started_at, w.is_rebuilt, w.position, w.is_superseded, w.trace
FROM lane LEFT JOIN waiting w ON true LEFT JOIN claimed ON true
"""  # noqa: S608
TAKE_NEXT = Prepared(
    "provisioning_take_next",
    f"WITH stream AS ({_STREAM}), lane AS ({_NEXT_LANE}), {_CLAIM}",
    {"lane": "bigint", "token": "uuid", "stream": "text", "probe": "boolean", "lease": "double precision", "most": "integer"},
)
TAKE_THIS = f"WITH lane AS ({_THIS_LANE}), stream AS ({_STREAM_OF_LANE}), {_CLAIM}"
TAKE_OLDEST = f"WITH stream AS ({_STREAM}), lane AS ({_OLDEST_LANE}), {_CLAIM}"
_DROP_IF_SETTLED = f"""
DELETE FROM provisioning_lane lane WHERE id = %(lane)s AND token = %(token)s AND (SELECT d.id {_FIRST_WAITING}) IS NULL
"""  # noqa: S608
DROP_IF_SETTLED = Prepared("provisioning_drop_if_settled", _DROP_IF_SETTLED, {"lane": "bigint", "token": "uuid"})
_NEEDS_THE_LOG = """
d.state = 'todo' AND d.position <= %(through)s AND NOT EXISTS (
    SELECT 1 FROM provisioning_deadletter letter WHERE letter.delivery_id = d.id AND letter.body IS NOT NULL)
"""
# Locks the stream before its lanes, as a dispatch does. The stream cannot be enabled meanwhile.
_LOCK_DISABLED = f"""
SELECT l.id FROM events_eventstream s JOIN provisioning_lane l ON l.stream_id = s.id
WHERE s.id = %(stream)s AND s.status = 'disabled' AND (l.lease_until IS NULL OR l.lease_until <= clock_timestamp())
    AND EXISTS (SELECT 1 FROM provisioning_delivery d WHERE d.stream_id = s.id AND d.key = l.key AND {_NEEDS_THE_LOG})
ORDER BY l.key LIMIT %(limit)s FOR NO KEY UPDATE OF s FOR UPDATE OF l
"""  # noqa: S608
_WAITING_IN = f"""
SELECT d.id FROM provisioning_lane l JOIN provisioning_delivery d ON d.stream_id = l.stream_id AND d.key = l.key
WHERE l.id = ANY(%(lanes)s) AND {_NEEDS_THE_LOG} ORDER BY d.position
"""  # noqa: S608
DROP_IF_EMPTY = f"""
DELETE FROM provisioning_lane lane WHERE id = %(lane)s AND (SELECT d.id {_FIRST_WAITING}) IS NULL
"""  # noqa: S608
_FREE_LANE = """
UPDATE provisioning_lane SET token = NULL, lease_until = NULL, delivery_id = NULL,
    nudged_until = clock_timestamp() + make_interval(secs => %(grace)s),
    not_before = greatest(not_before, clock_timestamp() + make_interval(secs => %(delay)s::double precision))
WHERE id = %(lane)s
"""


@dataclass(frozen=True)
class NamedLane:
    """A lane found by its key; its row is locked."""

    id: int
    is_leased: bool
    is_delivering: bool
    due_in: float


class Taken(NamedTuple):
    """A row of a claiming statement: a locked lane, and its first waiting delivery if any. If `token` is set, the delivery is claimed.

    The fields are the columns of claiming statements, in order. This is a `NamedTuple`, which is created faster than a dataclass: each
    delivery creates an instance.
    """

    lane_id: int
    token: UUID | None
    stream_id: str
    tenant_id: str
    key: str
    destination_type: str
    destination: str
    delivery_id: int | None
    event_id: str
    event_type: str
    body: bytes | None
    attempt: int
    series_attempt: int
    is_redelivery: bool
    started_at: datetime
    is_rebuilt: bool
    position: int
    is_superseded: bool
    trace: bytes | None

    def claim(self, *, is_probe: bool = False) -> Claim | None:
        """Return the claim that the statement made, or None."""
        if self.token is None or self.delivery_id is None or self.body is None:
            return None
        return Claim(
            lane_id=self.lane_id,
            token=self.token,
            stream_id=self.stream_id,
            tenant_id=self.tenant_id,
            key=self.key,
            destination_type=self.destination_type,
            destination=json.loads(self.destination),
            delivery_id=self.delivery_id,
            event_id=self.event_id,
            event_type=self.event_type,
            body=self.body,
            attempt=self.attempt,
            series_attempt=self.series_attempt,
            is_redelivery=self.is_redelivery,
            is_probe=is_probe,
            started_at=self.started_at,
            is_rebuilt=self.is_rebuilt,
            position=self.position,
            trace=self.trace,
        )


def lock_named(stream_id: str, key: str) -> NamedLane | None:
    """Lock the lane. `due_in` of the result is 0 or less if the lane may be claimed now."""
    return row_as(NamedLane, LOCK_NAMED, {"stream": stream_id, "key": key})


def lock_claimed(lane_id: int, token: UUID) -> bool:
    """Lock the lane if the claim with this token still owns the lane; tell whether the lane was locked."""
    return fetch_one(_LOCK_CLAIMED, [lane_id, token]) is not None


def take_first(lane_id: int, *, lease_seconds: float, most_attempts: int, probe: bool = False) -> Taken | None:
    """Claim the first waiting delivery of a lane whose row is locked; return None if the lane no longer exists."""
    return taken_of(fetch_one(TAKE_THIS, {"lane": lane_id, "lease": lease_seconds, "most": most_attempts, "probe": probe}))


def take_oldest(stream_id: str, *, lease_seconds: float, most_attempts: int, probe: bool = False) -> Taken | None:
    """Lock the unleased lane that has been due longest, and claim its first delivery.

    With `probe`, the stream may be held, and the lane need not be due. If the result has no delivery, query the locked lane again: a
    delivery that was dispatched meanwhile is not in the snapshot of this statement.
    """
    return taken_of(fetch_one(TAKE_OLDEST, {"stream": stream_id, "lease": lease_seconds, "most": most_attempts, "probe": probe}))


def due_key(stream_id: str) -> str | None:
    """Return the key of the stream's unleased lane that has been due longest. Does not lock the lane."""
    row = fetch_one(DUE_KEY, {"stream": stream_id, "probe": False})
    return None if row is None else str(row[0])


def lock_disabled(stream_id: str, *, through: int, limit: int) -> list[int]:
    """Lock the unleased lanes of a disabled stream in which waiting deliveries need events at or below position `through` from the log."""
    return [lane_id for (lane_id,) in fetch_all(_LOCK_DISABLED, {"stream": stream_id, "through": through, "limit": limit})]


def waiting_in(lane_ids: Sequence[int], *, through: int) -> list[int]:
    """Return the ids of waiting deliveries that are in locked lanes and need events at or below position `through`, in the order of the
    log."""
    return [delivery_id for (delivery_id,) in fetch_all(_WAITING_IN, {"lanes": list(lane_ids), "through": through})]


def drop_if_empty(lane_id: int) -> bool:
    """Delete a locked lane if no delivery waits in it; tell whether the lane was deleted."""
    return execute(DROP_IF_EMPTY, {"lane": lane_id}) == 1


def leave(lane_id: int, *, delay_seconds: float | None = 0.0, grace_seconds: float = 0.0) -> bool:
    """Release a locked lane: delete it if no delivery waits in it; otherwise make it due after the delay and return True.

    The lane is queued after all lanes that are due at that time. If the delay is None, the lane keeps its place in the queue. For
    `grace_seconds`, the sweeper assumes that a message for the lane is in the broker.
    """
    if drop_if_empty(lane_id):
        return False
    execute(_FREE_LANE, {"lane": lane_id, "delay": delay_seconds, "grace": (delay_seconds or 0.0) + grace_seconds})
    return True


def taken_of(row: Row | None) -> Taken | None:
    """Convert the row of a claiming statement."""
    return None if row is None else Taken._make(row)
