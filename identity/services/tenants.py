"""Make, suspend and address tenants."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.hosts import forget_hosts
from identity.models import CustomDomain, FormerTenant, Tenant
from identity.services.failures import Invalid
from identity.services.saving import validated_save
from identity.services.tenant_life import locked_tenant, move

# A day at least: nobody can resume from a log that is pruned as fast as it is read. Ten years at most.
RETENTION_DAYS = (1, 3650)
EDITABLE = ("name", "event_retention_days", "max_event_connections")


@unit_of_work
def create_tenant(*, tenant_id: str, name: str, host: str) -> Tenant:
    """Create a tenant that answers on `host`, its canonical domain; raise `Invalid` or `AlreadyExists`."""
    if Tenant.objects.filter(pk=tenant_id).exists():
        raise Invalid({"id": ["A tenant with this id is already there."]})
    # Asked after the tenant: a purge puts the one in the place of the other in one transaction.
    if FormerTenant.objects.filter(pk=tenant_id).exists():
        raise Invalid({"id": ["A deleted tenant had this id; events that others keep still name it."]})
    tenant = Tenant(pk=tenant_id, name=name)
    validated_save(tenant)
    validated_save(CustomDomain(tenant=tenant, host=host.lower(), is_canonical=True, verified_at=timezone.now()))
    forget_hosts()
    return tenant


@unit_of_work
def set_tenant_status(*, tenant_id: str, status: str) -> Tenant:
    """Suspend or activate a tenant; open streams notice within two seconds. Raises `NotSupported` for one that is being deleted."""
    tenant = locked_tenant(tenant_id)
    move(tenant, status)
    return tenant


@unit_of_work
def update_tenant(*, tenant_id: str, changes: dict[str, Any]) -> Tenant:
    """Replace name, retention and limit of a tenant; raise `Invalid` for anything else and for values that do not fit."""
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
    """Put the first steps of a tenant away for all of its staff; twice is harmless."""
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    if tenant.setup_dismissed_at is None:
        tenant.setup_dismissed_at = timezone.now()
        validated_save(tenant, fields=["setup_dismissed_at"])
