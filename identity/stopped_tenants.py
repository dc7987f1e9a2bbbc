"""The tenants that a move has stopped. No worker reads, changes or prunes their rows, because an export or an import is copying them.

The workers exclude these tenants in the statement that takes work, so that a stop takes effect with the next statement.
"""

from __future__ import annotations

from typing import TypeVar

from django.db import models
from django.db.models import Exists, OuterRef

from identity.models import Tenant
from identity.models.tenants import STOPPED

Row = TypeVar("Row", bound=models.Model)

# Seconds after which a client repeats a request that a stopped tenant has refused.
RETRY_AFTER_SECONDS = 30
STOPPED_STATUSES = frozenset(str(status) for status in STOPPED)
# The ids of stopped tenants, as a subquery for statements about many tenants.
STOPPED_TENANTS = f"SELECT id FROM identity_tenant WHERE status IN ({', '.join(repr(str(status)) for status in STOPPED)})"  # noqa: S608  (constants)


def is_stopped(tenant_id: str) -> bool:
    """Tell whether a move has stopped the tenant."""
    return Tenant.objects.filter(pk=tenant_id, status__in=STOPPED).exists()


def of_running_tenants(rows: models.QuerySet[Row], *, path: str = "tenant_id") -> models.QuerySet[Row]:
    """Return the rows, except the rows of stopped tenants. `path` is the lookup from a row to the id of its tenant."""
    return rows.exclude(Exists(Tenant.objects.filter(pk=OuterRef(path), status__in=STOPPED)))
