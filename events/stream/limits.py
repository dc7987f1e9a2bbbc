"""How many streams a tenant may hold open: its own number, else the platform's."""

from __future__ import annotations

from functools import partial

from django.conf import settings

from authapi import executor
from authapi.remembered import Cold, Remembered
from identity.models import Tenant

_REMEMBERED_SECONDS = 5.0


async def connection_limit(tenant_id: str) -> int:
    """Return the tenant's limit; a change is seen after five seconds."""
    try:
        own = _own_limits.warm(tenant_id)
    except Cold:
        own = await executor.run(partial(_own_limits.get, tenant_id))
    return settings.EVENTS_MAX_CONNECTIONS_PER_TENANT if own is None else own


def _load(tenant_id: str) -> int | None:
    return Tenant.objects.filter(pk=tenant_id).values_list("max_event_connections", flat=True).first()


_own_limits: Remembered[str, int | None] = Remembered(_load, seconds=_REMEMBERED_SECONDS)
