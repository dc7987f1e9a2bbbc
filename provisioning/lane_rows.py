"""The statements behind `provisioning.lanes`, each inside the transaction of its caller, and the lock they share.

The lane's row is the lock of everything in the lane. Each function that decides by what waits in it runs a statement of
its own after the lock was granted: only that snapshot sees what a dispatch committed while the lock was waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from provisioning.statements import execute, fetch_one

_ACTIVE = (
    "EXISTS (SELECT 1 FROM events_eventstream s WHERE s.id = l.stream_id AND s.status = 'enabled' AND (s.held_since IS NULL OR %(probe)s))"
)
_FREE = "(l.lease_until IS NULL OR l.lease_until <= clock_timestamp())"
_COLUMNS = "l.id, l.stream_id, l.key, l.tenant_id, l.token, l.delivery_id"

# Waits for the lock: it is held for moments only, and a skipped lane would wait for the sweeper.
_LOCK_NAMED = f"""
SELECT {_COLUMNS}, {_ACTIVE}, extract(epoch FROM greatest(l.not_before, coalesce(l.lease_until, l.not_before)) - clock_timestamp())
FROM provisioning_lane l WHERE l.stream_id = %(stream)s AND l.key = %(key)s FOR UPDATE
"""  # noqa: S608  (constants of this module)
_LOCK_OLDEST = f"""
SELECT {_COLUMNS} FROM provisioning_lane l
WHERE l.stream_id = %(stream)s AND (l.not_before <= clock_timestamp() OR %(probe)s) AND {_FREE} AND {_ACTIVE}
ORDER BY l.not_before, l.id LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_LOCK_CLAIMED = """
SELECT 1 FROM provisioning_lane WHERE id = %s AND token = %s AND lease_until > clock_timestamp() FOR UPDATE
"""
# A lock that had to be waited for may be granted after the lease ran out: the clock is read again.
_LEASE_LIVES = "SELECT 1 FROM provisioning_lane WHERE id = %s AND lease_until > clock_timestamp()"

_FIRST_WAITING = f"""
SELECT d.id, d.event_id, d.event_type, d.attempts, d.series_attempts, d.redeliveries > 0, coalesce(e.body, letter.body),
    d.redeliveries > 0 AND NOT d.is_forced AND EXISTS (
        SELECT 1 FROM provisioning_delivery n
        WHERE n.stream_id = d.stream_id AND n.key = d.key AND n.position > d.position AND n.is_written)
FROM provisioning_delivery d
JOIN provisioning_lane l ON l.id = %(lane)s
LEFT JOIN events_event e ON e.id = d.event
LEFT JOIN provisioning_deadletter letter ON letter.delivery_id = d.id
WHERE d.stream_id = l.stream_id AND d.key = l.key AND d.state = 'todo' AND {_ACTIVE}
ORDER BY d.position LIMIT 1
"""  # noqa: S608
_TAKE = """
WITH claimed AS (
    UPDATE provisioning_lane SET token = gen_random_uuid(), delivery_id = %(delivery)s, nudged_until = NULL,
        lease_until = clock_timestamp() + make_interval(secs => %(lease)s)
    WHERE id = %(lane)s RETURNING token, clock_timestamp() AS now
)
UPDATE provisioning_delivery SET attempts = attempts + 1, series_attempts = series_attempts + 1, last_attempt_at = claimed.now,
    first_attempt_at = coalesce(first_attempt_at, claimed.now)
FROM claimed WHERE id = %(delivery)s RETURNING claimed.token, attempts, series_attempts, last_attempt_at
"""
_DROP_IF_EMPTY = """
DELETE FROM provisioning_lane l WHERE id = %s AND NOT EXISTS (
    SELECT 1 FROM provisioning_delivery d WHERE d.stream_id = l.stream_id AND d.key = l.key AND d.state = 'todo')
"""
_FREE_LANE = """
UPDATE provisioning_lane SET token = NULL, lease_until = NULL, delivery_id = NULL,
    nudged_until = clock_timestamp() + make_interval(secs => %(grace)s),
    not_before = greatest(not_before, clock_timestamp() + make_interval(secs => %(delay)s))
WHERE id = %(lane)s
"""


@dataclass(frozen=True)
class LockedLane:
    """A lane whose row this transaction holds. A token that is still there belongs to a claim that never settled."""

    id: int
    stream_id: str
    key: str
    tenant_id: str
    token: UUID | None
    delivery_id: int | None


@dataclass(frozen=True)
class Waiting:
    """The first delivery that waits in a lane."""

    id: int
    event_id: str
    event_type: str
    attempts: int
    series_attempts: int
    is_redelivery: bool
    body: bytes | None
    is_superseded: bool


def lock_named(stream_id: str, key: str) -> tuple[LockedLane, bool, float] | None:
    """Lock the lane; return it, whether its stream delivers, and the seconds until it is due (0 or less: now)."""
    row = fetch_one(_LOCK_NAMED, {"stream": stream_id, "key": key, "probe": False})
    return None if row is None else (LockedLane(*row[:6]), row[6], float(row[7]))


def lock_oldest(stream_id: str, *, probe: bool = False) -> LockedLane | None:
    """Lock the lane that has been due longest and that nobody holds; a probe takes one of a held stream, due or not."""
    row = fetch_one(_LOCK_OLDEST, {"stream": stream_id, "probe": probe})
    return None if row is None else LockedLane(*row)


def lock_claimed(lane_id: int, token: UUID) -> bool:
    """Lock the lane if the claim still holds it."""
    return fetch_one(_LOCK_CLAIMED, [lane_id, token]) is not None and fetch_one(_LEASE_LIVES, [lane_id]) is not None


def first_waiting(lane_id: int, *, probe: bool = False) -> Waiting | None:
    """Return the delivery that runs next; None when nothing waits or the stream does not deliver now."""
    row = fetch_one(_FIRST_WAITING, {"lane": lane_id, "probe": probe})
    if row is None:
        return None
    values = list(row)
    if values[6] is not None:
        values[6] = bytes(values[6])
    return Waiting(*values)


def take(lane_id: int, delivery_id: int, lease_seconds: float) -> tuple[UUID, int, int, datetime]:
    """Claim: new token and lease for the lane, and the attempt is counted before it starts, so a crasher is counted too."""
    row = fetch_one(_TAKE, {"lane": lane_id, "delivery": delivery_id, "lease": lease_seconds})
    if row is None:
        raise AssertionError("the delivery of a locked lane is there")
    token, attempts, series_attempts, started_at = row
    return token, attempts, series_attempts, started_at


def leave(lane_id: int, *, delay_seconds: float = 0.0, grace_seconds: float = 0.0) -> bool:
    """Give the lane up: delete it when nothing waits in it, else free it, due after the delay, and return True.

    `grace_seconds` is how long the sweeper may trust that a message for the lane is under way.
    """
    if execute(_DROP_IF_EMPTY, [lane_id]):
        return False
    execute(_FREE_LANE, {"lane": lane_id, "delay": delay_seconds, "grace": delay_seconds + grace_seconds})
    return True
