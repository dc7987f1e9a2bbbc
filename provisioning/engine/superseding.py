"""Supersedes waiting deliveries of a disabled stream, for users whom a synchronization has just written.

The events of these deliveries are older than the written profiles; without this step, the deliveries would overwrite the profiles once the
stream is enabled. Locks are taken in the order of the dispatch: first the stream, then its lanes. Lanes with a running attempt are skipped.
"""

from __future__ import annotations

from django.db import transaction

from foundation.database.statements import fetch_all, fetch_one
from provisioning.engine import delivery_rows, lane_rows

# The deletion of a user that does not exist must still be delivered. The deletion of a user that exists again must not be delivered.
_IS_PAST = """
d.state = 'todo' AND d.position <= %(through)s AND d.key LIKE 'user:%%' AND (
    d.event_type IN ('user.created', 'user.updated')
    OR d.event_type = 'user.deleted' AND EXISTS (
        SELECT 1 FROM identity_user u WHERE u.tenant_id = d.tenant_id AND u.user_id = substr(d.key, 6)))
"""
_LOCK_LANES = f"""
SELECT l.id FROM events_eventstream s JOIN provisioning_lane l ON l.stream_id = s.id
WHERE s.id = %(stream)s AND s.status = 'disabled' AND (l.lease_until IS NULL OR l.lease_until <= clock_timestamp())
    AND EXISTS (SELECT 1 FROM provisioning_delivery d WHERE d.stream_id = s.id AND d.key = l.key AND {_IS_PAST})
ORDER BY l.key LIMIT %(limit)s FOR NO KEY UPDATE OF s FOR UPDATE OF l
"""  # noqa: S608  (constants of this module)
_PAST_IN = f"""
SELECT d.id FROM provisioning_lane l JOIN provisioning_delivery d ON d.stream_id = l.stream_id AND d.key = l.key
WHERE l.id = ANY(%(lanes)s) AND {_IS_PAST} ORDER BY d.position
"""  # noqa: S608
_UNDER_WAY = "SELECT EXISTS (SELECT 1 FROM provisioning_lane WHERE stream_id = %s AND lease_until > clock_timestamp())"


def supersede_disabled(stream_id: str, *, through: int, limit: int) -> int:
    """Supersede waiting deliveries of users up to position `through`, in at most `limit` lanes; return the number of lanes."""
    values = {"stream": stream_id, "through": through, "limit": limit}
    with transaction.atomic():
        lane_ids = [lane_id for (lane_id,) in fetch_all(_LOCK_LANES, values)]
        for (delivery_id,) in fetch_all(_PAST_IN, {"lanes": lane_ids, "through": through}):
            delivery_rows.supersede(delivery_id)
        for lane_id in lane_ids:
            lane_rows.leave(lane_id)
    return len(lane_ids)


def is_under_way(stream_id: str) -> bool:
    """Tell whether an attempt of the stream is running."""
    (found,) = fetch_one(_UNDER_WAY, [stream_id]) or (False,)
    return bool(found)
