"""Checks provisioning before a tenant is exported: no delivery may run."""

from __future__ import annotations

from foundation.database.statements import fetch_one

_LEASED = "SELECT count(*) FROM provisioning_lane WHERE tenant_id = %s AND lease_until > clock_timestamp()"


def unfinished(tenant_id: str) -> list[str]:
    """Return a sentence if deliveries run. A lease ends with its delivery, or expires if its worker has died."""
    (count,) = fetch_one(_LEASED, [tenant_id]) or (0,)
    return [f"{count:,} deliveries run."] if count else []
