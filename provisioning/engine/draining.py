"""Tells whether a tenant's event streams have delivered all events. The deletion of a tenant waits until all events are delivered."""

from __future__ import annotations

from foundation.database.statements import fetch_one

# Disabled streams are ignored. Held streams are included: the deletion waits until the hold ends, but not beyond the deletion's own time
# limit.
_UNDER_WAY = """
SELECT EXISTS (SELECT 1 FROM events_outbox WHERE tenant_id = %(tenant)s AND EXISTS (
    SELECT 1 FROM events_eventstream WHERE tenant_id = %(tenant)s AND status = 'enabled'
)) OR EXISTS (
    SELECT 1 FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id
    WHERE s.tenant_id = %(tenant)s AND s.status = 'enabled' AND s.position < h.position
) OR EXISTS (
    SELECT 1 FROM provisioning_lane l JOIN events_eventstream s ON s.id = l.stream_id
    WHERE s.tenant_id = %(tenant)s AND s.status = 'enabled'
)
"""


def is_drained(tenant_id: str) -> bool:
    """Tell whether every enabled stream of the tenant has delivered or dead-lettered all recorded events.

    One statement checks for events without a position, events without deliveries, and waiting deliveries. An undelivered event
    is always in exactly one of these three places, because each transition is one transaction.
    """
    (is_under_way,) = fetch_one(_UNDER_WAY, {"tenant": tenant_id}) or (False,)
    return not is_under_way
