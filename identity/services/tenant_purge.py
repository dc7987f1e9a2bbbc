"""Delete the last rows of a tenant whose log is old enough: the head of the log first, then table by table, then the tenant itself.

Every transaction deletes one chunk and waits for no lock. So an interrupted purge can resume, and a purge never blocks numbering. A purge
records no events: the deletion of the tenant has already recorded them.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.hosts import forget_hosts
from identity.models import FormerTenant, Staff, Tenant
from identity.purging import OwnedTable, coverage
from identity.services.failures import NotFound, NotSupported

CHUNK_ROWS = 2000


class PurgeBlocked(RuntimeError):
    """Another transaction holds locks on rows of the tenant; a later purge continues."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def due_tenants() -> list[str]:
    """Return the deleted tenants whose log is old enough to be purged."""
    due = Tenant.objects.filter(status=Tenant.Status.DELETED, purge_after__lte=timezone.now())
    return list(due.order_by("purge_after", "id").values_list("pk", flat=True))


def purge_tenant(tenant_id: str, *, seconds: float | None = None) -> bool:
    """Purge a deleted tenant for up to this number of seconds. Returns whether no row is left.

    Raises `NotFound` and `PurgeBlocked`. Raises `NotSupported` for a tenant that is not deleted, or whose purge is not due yet.
    """
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("The tenant does not exist.")
    if tenant.status != Tenant.Status.DELETED or tenant.purge_after is None or tenant.purge_after > timezone.now():
        raise NotSupported(f"The tenant {tenant_id} is {tenant.status}, and its rows are not due for deletion.")
    end_staff_sessions(tenant_id)
    until = None if seconds is None else time.monotonic() + seconds
    while purge_chunk(tenant_id):
        if until is not None and time.monotonic() > until:
            return False
    _end(tenant_id)
    return True


def purge_chunk(tenant_id: str) -> int:
    """Delete the next chunk of a tenant's rows. Returns the number of deleted rows, 0 if only the tenant itself is left."""
    for table in coverage().ordered:
        if count := _delete_chunk(table, tenant_id):
            return count
    return 0


def _delete_chunk(table: OwnedTable, tenant_id: str) -> int:
    with transaction.atomic():
        rows = table.rows(tenant_id)
        # Skips locked rows instead of waiting, because the numberer may be deleting the same rows.
        locked = rows.order_by("pk").select_for_update(skip_locked=True, of=("self",))
        keys = list(locked.values_list("pk", flat=True)[:CHUNK_ROWS])
        if not keys:
            if rows.exists():
                raise PurgeBlocked
            return 0
        chosen: models.QuerySet[Any] = models.QuerySet(table.model).filter(pk__in=keys)
        if getattr(table.model, "is_recorded", False):
            # Bypasses the signals, which would record events for a log that no longer exists. The marks that the triggers write are
            # deleted last.
            chosen._raw_delete(chosen.db)
        else:
            chosen.delete()
    return len(keys)


def end_staff_sessions(tenant_id: str) -> None:
    """Delete the sessions of the tenant's staff. Reads all sessions, because no column names the account of a session."""
    staff = {str(key) for key in Staff.objects.filter(tenant=tenant_id).values_list("pk", flat=True)}
    for session in Session.objects.iterator() if staff else ():
        if session.get_decoded().get(SESSION_KEY) in staff:
            session.delete()


@unit_of_work
def _end(tenant_id: str) -> None:
    """Replace the tenant by a `FormerTenant`. Foreign keys guarantee that no row of the tenant is left."""
    FormerTenant.objects.get_or_create(pk=tenant_id)
    Tenant.objects.filter(pk=tenant_id).delete()
    forget_hosts()
