"""Create, suspend and change tenants."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.hosts import forget_hosts
from identity.models import CustomDomain, FormerTenant, Tenant
from identity.services.failures import Invalid, NotSupported
from identity.services.saving import validated_save
from identity.services.tenant_life import OPEN, locked_tenant, move

# The retention is at least one day, because no consumer can resume from a log that is pruned at once. It is at most ten years.
RETENTION_DAYS = (1, 3650)
EDITABLE = ("name", "event_retention_days", "max_event_connections")


@unit_of_work
def create_tenant(*, tenant_id: str, name: str, host: str) -> Tenant:
    """Create a tenant with `host` as its canonical domain. Raises `Invalid` or `AlreadyExists`."""
    if Tenant.objects.filter(pk=tenant_id).exists():
        raise Invalid({"id": ["A tenant with this id already exists."]})
    # Read former tenants after tenants. A purge replaces a tenant by a former tenant in one transaction, so one of the two queries finds
    # the id.
    if FormerTenant.objects.filter(pk=tenant_id).exists():
        raise Invalid({"id": ["A deleted tenant had this id, and events that consumers keep still name it."]})
    tenant = Tenant(pk=tenant_id, name=name)
    validated_save(tenant)
    validated_save(CustomDomain(tenant=tenant, host=host.lower(), is_canonical=True, verified_at=timezone.now()))
    forget_hosts()
    return tenant


@unit_of_work
def set_tenant_status(*, tenant_id: str, status: str) -> Tenant:
    """Set the status of a tenant to active, suspended or draining. Open streams notice the change within two seconds.

    Raises `NotSupported` for another status, and for a tenant that is being deleted, deleted or moved: its status changes only with
    `tenant_deletion` or `identity.moving`.
    """
    tenant = locked_tenant(tenant_id)
    if not {tenant.status, status} <= set(OPEN):
        raise NotSupported(f"A tenant that is {tenant.status} cannot become {status}.")
    move(tenant, status)
    return tenant


@unit_of_work
def update_tenant(*, tenant_id: str, changes: dict[str, Any]) -> Tenant:
    """Replace the name, the retention of events or the limit of streams of a tenant. Raises `Invalid` for other fields and for invalid
    values."""
    unknown = {name: ["Unknown field."] for name in changes if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
    days = changes.get("event_retention_days")
    fewest, most = RETENTION_DAYS
    if days is not None and not fewest <= days <= most:
        raise Invalid({"event_retention_days": [f"{fewest} to {most} days, or empty for the platform's default."]})
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    for name, value in changes.items():
        setattr(tenant, name, value)
    if changes:
        validated_save(tenant, fields=list(changes))
    return tenant


@unit_of_work
def dismiss_setup(*, tenant_id: str) -> None:
    """Hide the first steps of a tenant for all of its staff. A repeated call does no harm."""
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    if tenant.setup_dismissed_at is None:
        tenant.setup_dismissed_at = timezone.now()
        validated_save(tenant, fields=["setup_dismissed_at"])
