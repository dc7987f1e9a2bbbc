"""Refuses requests to tenants that are not active."""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from identity.hosts import HostMatch
from identity.stopped_tenants import RETRY_AFTER_SECONDS, STOPPED_STATUSES

# A tenant that is being deleted answers like a suspended tenant, so that clients cannot distinguish the two states.
_CASES = {
    **dict.fromkeys(("suspended", "deleting", "deleted"), RequestCase.TENANT_SUSPENDED),
    "draining": RequestCase.TENANT_DRAINING,
    **dict.fromkeys(STOPPED_STATUSES, RequestCase.TENANT_STOPPED),
}
_STOPPED = {"Retry-After": str(RETRY_AFTER_SECONDS)}


def require_open(host: HostMatch) -> None:
    """Raise `RequestRefused` if the status of the tenant does not allow requests."""
    case = _CASES.get(host.status)
    if case is not None:
        raise RequestRefused(case, headers=_STOPPED if host.is_stopped else None)
