"""Creates deliveries from log entries. Each enabled stream reads the log from its own position."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from django.db import connection, transaction

from events.log.traced_events import LogRange, note_events
from foundation import failpoints
from foundation.database.statements import execute, fetch_all, fetch_one
from foundation.tracing import spans as tracing
from identity.stopped_tenants import STOPPED_TENANTS
from provisioning.engine import deletion_counting

logger = logging.getLogger(__name__)

BATCH = 1000
# The sweeper ignores a new lane for this many seconds, because the nudge that the dispatch sends usually starts the deliveries sooner.
NUDGE_GRACE_SECONDS = 3

_STREAMS_BEHIND = f"""
SELECT s.id FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id
WHERE s.tenant_id = %s AND s.status = 'enabled' AND s.position < h.position AND s.tenant_id NOT IN ({STOPPED_TENANTS}) ORDER BY s.id
"""  # noqa: S608  (a constant)
_LOCK_STREAM = f"""
SELECT tenant_id, position, ARRAY(SELECT jsonb_array_elements_text(subscriptions)) FROM events_eventstream
WHERE id = %s AND status = 'enabled' AND tenant_id NOT IN ({STOPPED_TENANTS}) FOR NO KEY UPDATE
"""  # noqa: S608  (a constant)
# Skip a stream that another process has locked, because that process reads the log to its end.
_LOCK_FREE_STREAM = f"{_LOCK_STREAM} SKIP LOCKED"
_LAST_OF_BATCH = """
SELECT max(position), min(position) FROM (
    SELECT position FROM events_logentry WHERE tenant_id = %s AND position > %s ORDER BY position LIMIT %s
) page
"""
_INSERT_DELIVERIES = """
INSERT INTO provisioning_delivery (stream_id, tenant_id, key, position, event, event_id, event_type, state, is_written, attempts,
    series_attempts, redeliveries, is_forced, reason, detail, error_class, error_scim_type, error_message, error_fingerprint)
SELECT %(stream)s, l.tenant_id, e.root, l.position, e.id, e.event_id, e.type, 'todo', false, 0, 0, 0, false, '', '{}', '', '', '', ''
FROM events_logentry l JOIN events_event e ON e.id = l.event_id
WHERE l.tenant_id = %(tenant)s AND l.position > %(after)s AND l.position <= %(last)s AND e.type = ANY(%(types)s)
ORDER BY l.position
ON CONFLICT (stream_id, event) DO NOTHING
RETURNING key, event_type
"""
# The statement uses DO UPDATE and not DO NOTHING, because the update locks an existing lane. A worker that is about to delete the empty
# lane waits and then sees the new deliveries. If it has already deleted the lane, this statement inserts the lane again. Lanes are locked
# in the order of their keys, which prevents deadlocks. An existing lane keeps its `not_before`, because a new event must not shorten the
# pause after a failure.
_UPSERT_LANES = """
INSERT INTO provisioning_lane (stream_id, key, tenant_id, nudged_until)
SELECT %(stream)s, key, %(tenant)s, clock_timestamp() + make_interval(secs => %(grace)s)
FROM (SELECT DISTINCT unnest(%(keys)s::text[]) AS key ORDER BY key) keys
ON CONFLICT (stream_id, key) DO UPDATE SET key = EXCLUDED.key
RETURNING key, (xmax = 0)
"""
_ADVANCE = "UPDATE events_eventstream SET position = %s WHERE id = %s"


@dataclass
class Dispatched:
    """The progress of the dispatch of one stream. `new_lanes` contains the keys of lanes for which no nudge was sent yet."""

    stream_id: str
    deliveries: int = 0
    new_lanes: list[str] = field(default_factory=list)


def dispatch_tenant(tenant_id: str) -> list[Dispatched]:
    """Dispatch every enabled stream of the tenant up to the head of its log."""
    return [dispatch_stream(stream_id) for (stream_id,) in fetch_all(_STREAMS_BEHIND, [tenant_id])]


def dispatch_stream(stream_id: str) -> Dispatched:
    """Create deliveries for all events after the stream's position, at most 1,000 events per transaction.

    A held stream is dispatched as well, because a hold pauses only deliveries.
    """
    done = Dispatched(stream_id)
    while dispatch_batch(done):
        pass
    failpoints.reach("dispatched")
    return done


def dispatch_batch(done: Dispatched, *, wait: bool = False) -> bool:
    """Dispatch the next page of the log in one transaction; return True if there may be more.

    Deliveries, lanes and the position are committed together, so after a crash the page is either dispatched completely or dispatched
    again. With `wait`, block until the stream's lock is free; otherwise return False if another process dispatches the stream.
    """
    began_ns = time.time_ns()
    with transaction.atomic():
        stream = fetch_one(_LOCK_STREAM if wait else _LOCK_FREE_STREAM, [done.stream_id])
        if stream is None:
            return False
        tenant_id, position, types = stream
        # A separate statement after the lock: its snapshot includes all events that were numbered before the lock was granted.
        last, first = fetch_one(_LAST_OF_BATCH, [tenant_id, position, BATCH]) or (None, None)
        if last is None:
            return False
        if first > position + 1:
            # Positions are dense, so a gap means that unread events were pruned from the log.
            logger.error("stream %s lost %s events to retention", done.stream_id, first - position - 1)
        page = {"stream": done.stream_id, "tenant": tenant_id, "after": position, "last": last, "types": types}
        made = fetch_all(_INSERT_DELIVERIES, page)
        if keys := [key for key, _ in made]:
            lanes = fetch_all(_UPSERT_LANES, {**page, "keys": keys, "grace": NUDGE_GRACE_SECONDS})
            done.new_lanes.extend(key for key, is_new in lanes if is_new)
            new = sum(event_type == "user.deleted" for _, event_type in made)
            deletion_counting.count_deletions(stream_id=done.stream_id, tenant_id=tenant_id, new=new)
        execute(_ADVANCE, [last, done.stream_id])
        done.deliveries += len(keys)
        failpoints.reach("dispatching")
    if keys and tracing.is_on():
        dispatched = LogRange(tenant_id, after=position, through=last)
        note_events(connection, dispatched, "provisioning.dispatch", began_ns=began_ns, types=types, **{"stream.id": done.stream_id})
    return bool(last - position >= BATCH)
