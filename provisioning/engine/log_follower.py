"""Reports the log positions that streams and deliveries still need. The code that prunes or restores a log reads this report."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from events.hooks import Hold
from foundation.database.statements import execute, fetch_all, fetch_one
from provisioning.engine import lanes, streams
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Failure

_LANES_AT_ONCE = 100
_DISABLED_TOO_LONG = Failure(FailureClass.MISSING.value, "the stream was disabled for longer than the log keeps events")

# Omits deliveries whose dead letter has a copy of the event: a redelivery reads this copy and does not need the log.
_NEEDS = """
SELECT s.id, s.status = 'disabled', s.held_since, s.position, (
    SELECT min(d.position) FROM provisioning_delivery d
    WHERE d.stream_id = s.id AND d.state = 'todo' AND d.position <= %(through)s AND NOT EXISTS (
        SELECT 1 FROM provisioning_deadletter letter WHERE letter.delivery_id = d.id AND letter.body IS NOT NULL))
FROM events_eventstream s WHERE s.tenant_id = %(tenant)s ORDER BY s.id
"""
_DISABLED = "SELECT id FROM events_eventstream WHERE tenant_id = %s AND status = 'disabled' ORDER BY id"
_BEYOND = """
SELECT (SELECT count(*) FROM events_eventstream WHERE tenant_id = %(tenant)s AND position > %(head)s),
    (SELECT count(*) FROM provisioning_delivery WHERE tenant_id = %(tenant)s AND position > %(head)s)
"""
# Locks in the same order as the dispatch: streams, then lanes by key.
_LOCK_STREAMS = "SELECT id FROM events_eventstream WHERE tenant_id = %(tenant)s ORDER BY id FOR UPDATE"
_LOCK_LANES = "SELECT id FROM provisioning_lane WHERE tenant_id = %(tenant)s ORDER BY stream_id, key FOR UPDATE"
_STEP_BACK = "UPDATE events_eventstream SET position = %(head)s WHERE tenant_id = %(tenant)s AND position > %(head)s"
_DROP_BEYOND = """
WITH lost AS (DELETE FROM provisioning_delivery WHERE tenant_id = %(tenant)s AND position > %(head)s RETURNING id),
attempts AS (DELETE FROM provisioning_attempt WHERE delivery_id IN (SELECT id FROM lost))
DELETE FROM provisioning_deadletter WHERE delivery_id IN (SELECT id FROM lost)
"""
_DROP_EMPTY_LANES = """
DELETE FROM provisioning_lane l WHERE l.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT 1 FROM provisioning_delivery d WHERE d.stream_id = l.stream_id AND d.key = l.key AND d.state = 'todo')
"""


class DeliveryFollower:
    """Reports two kinds of positions: the position of each stream, which still has to read all later events, and the position of each
    waiting delivery, whose event is still to be sent.
    """

    def make_way(self, tenant_id: str, *, through: int) -> None:
        """Turn waiting deliveries of disabled streams, up to position `through`, into dead letters with copies of the events."""
        for (stream_id,) in fetch_all(_DISABLED, [tenant_id]):
            while lanes.bury_disabled(stream_id, _DISABLED_TOO_LONG, through=through, limit=_LANES_AT_ONCE):
                pass

    def holds(self, tenant_id: str, *, through: int) -> Sequence[Hold]:
        """Return the holds of streams that have not read up to `through`, and of streams with waiting deliveries.

        No stream can later need an earlier position: deliveries are created only after the position of their stream, and a new or enabled
        stream starts at the head. The exception is a stream that a synchronization will enable at an earlier position. So the result also
        has a hold for each of these synchronizations. Waiting deliveries of a disabled stream hold positions back until `make_way` has made
        them dead letters.
        """
        found = []
        for stream_id, is_disabled, held_since, position, waiting in fetch_all(_NEEDS, {"tenant": tenant_id, "through": through}):
            name = f"event stream {stream_id}"
            if not is_disabled and position < through:
                found.append(Hold(position, f"{name} (behind the log)"))
            if waiting is not None:
                why = f"held since {held_since:%Y-%m-%d}" if held_since else "disabled" if is_disabled else "waiting deliveries"
                found.append(Hold(waiting - 1, f"{name} ({why})", does_yield=is_disabled))
        # A synchronization that starts later begins at the head, so it needs no earlier event.
        enabled_at = streams.enabling_positions(tenant_id)
        found += [Hold(position, f"the synchronization of event stream {stream_id}") for stream_id, position in enabled_at.items()]
        return found

    def beyond(self, tenant_id: str, *, head: int) -> Sequence[str]:
        """Count the streams and deliveries beyond the head."""
        streams, deliveries = fetch_one(_BEYOND, {"tenant": tenant_id, "head": head}) or (0, 0)
        told = [f"event streams beyond the head, set back to it: {streams:,}"] if streams else []
        if deliveries:
            told.append(f"deliveries of events that the log no longer has, dropped with their dead letters: {deliveries:,}")
        return told

    def step_back(self, tenant_id: str, *, head: int) -> None:
        """Set streams back to the head, and delete deliveries beyond it.

        A stream beyond the head would skip the next events. A delivery beyond the head has a position and the id of an event row; both will
        be assigned again. So this delivery would prevent the delivery of the new event.
        """
        values = {"tenant": tenant_id, "head": head}
        with transaction.atomic():
            fetch_all(_LOCK_STREAMS, values)
            fetch_all(_LOCK_LANES, values)
            execute(_STEP_BACK, values)
            execute(_DROP_BEYOND, values)
            execute(_DROP_EMPTY_LANES, values)
