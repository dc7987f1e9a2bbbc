"""The life of a tenant: its states, what leads from one to the next, and who may still add to it.

active, suspended, draining   an operator moves it between these as often as needed
-> deleting                   `tenant_deletion.start`: 403 on its hosts at once; a job deletes everything, each with its
                              event, and lets its event streams deliver the rest
deleting -> suspended         `tenant_deletion.restore`, while nothing of it has been deleted yet
deleting -> deleted           the job is done; only the log and what was delivered is left, until `purge_after`
deleted -> purged             `tenant_purge`: no row is left, its hosts are free, and its id stays in `FormerTenant`
"""

from __future__ import annotations

from django.db import connection

from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.services.failures import BeingDeleted, NotFound, NotSupported
from identity.services.saving import validated_save

_OPEN = (Tenant.Status.ACTIVE, Tenant.Status.SUSPENDED, Tenant.Status.DRAINING)
_NEXT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OPEN, (*_OPEN, Tenant.Status.DELETING)),
    Tenant.Status.DELETING: (Tenant.Status.SUSPENDED, Tenant.Status.DELETED),
    Tenant.Status.DELETED: (),
}


def locked_tenant(tenant_id: str) -> Tenant:
    """Return the tenant with its row locked until the transaction ends; raise `NotFound`."""
    tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("The tenant does not exist.")
    return tenant


def move(tenant: Tenant, status: str) -> None:
    """Lead a locked tenant to another state and save it; raise `NotSupported` where no way leads there."""
    if status not in _NEXT[tenant.status]:
        raise NotSupported(f"A tenant that is {tenant.status} cannot become {status}.")
    tenant.status = status
    validated_save(tenant, fields=["status", "deletion_started_at", "purge_after"])
    forget_hosts()


def refuse_in_closing_tenant(tenant_id: str) -> None:
    """Raise `BeingDeleted` where something new would be added to a tenant on its way out.

    The shared lock lets a deletion wait for those who have just asked, so that it misses nothing they add.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT status FROM identity_tenant WHERE id = %s FOR SHARE", [tenant_id])
        found = cursor.fetchone()
    if found is not None and found[0] in (Tenant.Status.DELETING, Tenant.Status.DELETED):
        raise BeingDeleted(f"The tenant {tenant_id} is being deleted.")
