"""Whether a tenant's event streams have handed over everything: what its deletion waits for."""

from __future__ import annotations

from foundation.database.statements import fetch_one

# A disabled stream owes nothing to anybody. A held one does, until its hold is over or the deletion's deadline.
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
    """Tell whether every enabled stream of the tenant has delivered or dead-lettered all that was recorded.

    Three questions in one statement: events without a position, events without deliveries, deliveries that wait. An
    event is in one of the three places at any moment, since each transition is one transaction.
    """
    (is_under_way,) = fetch_one(_UNDER_WAY, {"tenant": tenant_id}) or (False,)
    return not is_under_way
