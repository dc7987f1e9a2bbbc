"""What must be done in provisioning before a tenant is exported: no delivery runs."""

from __future__ import annotations

from foundation.database.statements import fetch_one

_LEASED = "SELECT count(*) FROM provisioning_lane WHERE tenant_id = %s AND lease_until > clock_timestamp()"


def unfinished(tenant_id: str) -> list[str]:
    """Return a sentence if deliveries run. A lease ends with its delivery, or expires after the death of its worker."""
    (count,) = fetch_one(_LEASED, [tenant_id]) or (0,)
    return [f"{count:,} deliveries run."] if count else []
