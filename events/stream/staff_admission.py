"""Checks the request of a member of staff who watches a tenant's log in the admin.

The session of the member of staff replaces the token, and the stream uses no slot of the tenant. The stream and all other checks are the
same as for a client. These checks concern the draining of the process, the rate, the query, the cursor, and the limit of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authapi.edge import throttling
from authapi.failures.requests import TOO_MANY_REQUESTS
from events.stream.admission import Admitted, address_of, first_page_of, jittered_seconds, placed, wanted_of, wire_headers
from events.stream.operating.leases import Lease, ProcessLimitReached, TenantLimitReached
from events.stream.reading.floor import floor_headers
from events.stream.refusals import Refused, unavailable
from events.stream.runtime import StreamRuntime
from events.stream.subscription import Subscription

# Maximum number of live pages per tenant. They are counted separately from the streams of clients, so that staff never use the slot of a
# client.
WATCHERS_PER_TENANT = 8
STAFF = "staff "
_ENDPOINT = "events/live"


@dataclass(frozen=True, slots=True)
class Watcher:
    """A member of staff who may see the log of one tenant until `expires_at`, the end of the session in Unix seconds."""

    tenant_id: str
    name: str
    expires_at: float


async def admit_watcher(scope: Mapping[str, Any], watcher: Watcher, shared: StreamRuntime, *, still_stands: Callable[[], bool]) -> Admitted:
    """Check a request of a member of staff and take a slot. Raises `Refused`. The caller must release the slot of the result."""
    if shared.is_draining:
        raise unavailable("The server is restarting.", retry_after_seconds=jittered_seconds())
    tenant_id = watcher.tenant_id
    rate = await throttling.hit_async(tenant_id, _ENDPOINT)
    if rate.is_exceeded:
        raise Refused(429, TOO_MANY_REQUESTS, headers=wire_headers(rate))
    wanted = wanted_of(scope)
    bounds, start = await placed(wanted, tenant_id, shared)
    lease = await _slot(tenant_id, shared)
    try:
        first_page = await first_page_of(tenant_id, bounds, start, shared)
    except BaseException:
        shared.leases.release(lease)
        raise
    subscription = Subscription(
        tenant_id=tenant_id,
        client_id=f"{STAFF}{watcher.name}",
        client_version=0,
        jti="",
        expires_at=watcher.expires_at,
        start=start,
        bounds=bounds,
        types=wanted.types,
        not_before=wanted.moment,
        connection_id=lease.member,
        address=address_of(scope),
        still_stands=still_stands,
    )
    return Admitted(subscription, lease, first_page, wire_headers(rate) + floor_headers(bounds, shared.sealer(tenant_id)))


async def _slot(tenant_id: str, shared: StreamRuntime) -> Lease:
    try:
        # A tenant id never contains a slash, so this key differs from the key of every tenant.
        return await shared.leases.acquire(f"staff/{tenant_id}", limit=WATCHERS_PER_TENANT)
    except TenantLimitReached as error:
        raise Refused(403, f"{WATCHERS_PER_TENANT} live pages of this tenant are open. Close one.", code="connection_limit") from error
    except ProcessLimitReached as error:
        raise unavailable("This server has reached its maximum number of open streams.", retry_after_seconds=jittered_seconds()) from error
