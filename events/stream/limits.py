"""Returns the limits of a tenant: those in its row, otherwise the settings. A change takes effect within five seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from foundation.memory import executor
from foundation.memory.ttl_cache import Remembered
from identity.models import Tenant

_REMEMBERED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum number of a tenant's open streams, and the retention of its events."""

    connections: int
    retention: timedelta


async def limits_of(tenant_id: str) -> Limits:
    """Return the limits of a tenant; queried outside the event loop and cached for five seconds."""
    connections, days = await executor.remembered(_own_limits, tenant_id)
    return Limits(
        settings.EVENTS_MAX_CONNECTIONS_PER_TENANT if connections is None else connections,
        timedelta(days=settings.EVENTS_RETENTION_DAYS if days is None else days),
    )


def _load(tenant_id: str) -> tuple[int | None, int | None]:
    own = Tenant.objects.filter(pk=tenant_id).values_list("max_event_connections", "event_retention_days").first()
    return (None, None) if own is None else own


_own_limits: Remembered[str, tuple[int | None, int | None]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)
