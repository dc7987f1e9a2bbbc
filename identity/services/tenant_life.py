"""The lifecycle of a tenant: its states, their transitions, and which states permit new rows.

active, suspended, draining   an operator switches between these states
-> deleting                   `tenant_deletion.start`: the hosts of the tenant answer 403 at once; a job deletes all rows.
                              Each deletion is an event, and the event streams deliver these events
deleting -> suspended         `tenant_deletion.restore`, if nothing was deleted yet
deleting -> deleted           the job is done; only the log and the deliveries remain, until `purge_after`
deleted -> purged             `tenant_purge`: no row remains, its hosts are free, and its id is in `FormerTenant`
stopped, moved, arriving      a move to another installation; only `identity.moving` enters and leaves these states
"""

from __future__ import annotations

from django.db import connection

from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.models.tenants import STOPPED
from identity.services.failures import BeingDeleted, NotFound, NotSupported
from identity.services.saving import validated_save

# An operator switches a tenant between these states.
OPEN = (Tenant.Status.ACTIVE, Tenant.Status.SUSPENDED, Tenant.Status.DRAINING)
_NEXT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(OPEN, (*OPEN, Tenant.Status.DELETING)),
    Tenant.Status.DELETING: (Tenant.Status.SUSPENDED, Tenant.Status.DELETED),
    Tenant.Status.DELETED: (),
    **dict.fromkeys(STOPPED, ()),
}


def locked_tenant(tenant_id: str) -> Tenant:
    """Return the tenant with its row locked until the transaction ends. Raises `NotFound`."""
    tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("The tenant does not exist.")
    return tenant


def move(tenant: Tenant, status: str) -> None:
    """Change the status of a locked tenant and save it. Raises `NotSupported` for a transition that is not allowed."""
    if status not in _NEXT[tenant.status]:
        raise NotSupported(f"A tenant that is {tenant.status} cannot become {status}.")
    tenant.status = status
    validated_save(tenant, fields=["status", "deletion_started_at", "purge_after"])
    forget_hosts()


def refuse_in_closing_tenant(tenant_id: str) -> None:
    """Raise `BeingDeleted` if the tenant is being deleted or is deleted, before a new row is added.

    The shared lock makes a deletion wait for transactions that have passed this check, so that the deletion finds all rows of these
    transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT status FROM identity_tenant WHERE id = %s FOR SHARE", [tenant_id])
        found = cursor.fetchone()
    if found is not None and found[0] in (Tenant.Status.DELETING, Tenant.Status.DELETED):
        raise BeingDeleted(f"The tenant {tenant_id} is being deleted.")
