"""Delete the last rows of a tenant whose log is old enough: the head first, then table by table, then the tenant itself.

Every step is a transaction that deletes a chunk and waits for nobody, so a purge that is stopped goes on where it was and
never stands in the way of numbering. What it deletes is no event: the events of the deletion were recorded long before.
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
    """Rows of the tenant are locked by somebody else; the purge goes on another time."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def due_tenants() -> list[str]:
    """Return the deleted tenants whose log is old enough to go."""
    due = Tenant.objects.filter(status=Tenant.Status.DELETED, purge_after__lte=timezone.now())
    return list(due.order_by("purge_after", "id").values_list("pk", flat=True))


def purge_tenant(tenant_id: str, *, seconds: float | None = None) -> bool:
    """Purge a deleted tenant for up to so many seconds; return whether nothing of it is left.

    Raises `NotFound`, `NotSupported` for a tenant that is not deleted or not due yet, and `PurgeBlocked`.
    """
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("The tenant does not exist.")
    if tenant.status != Tenant.Status.DELETED or tenant.purge_after is None or tenant.purge_after > timezone.now():
        raise NotSupported(f"The tenant {tenant_id} is {tenant.status}, and its rows are not due to go.")
    _end_sessions(tenant_id)
    until = None if seconds is None else time.monotonic() + seconds
    while purge_chunk(tenant_id):
        if until is not None and time.monotonic() > until:
            return False
    _end(tenant_id)
    return True


def purge_chunk(tenant_id: str) -> int:
    """Delete the next chunk of a tenant's rows; return how many went, 0 when only the tenant itself is left."""
    for table in coverage().ordered:
        if count := _delete_chunk(table, tenant_id):
            return count
    return 0


def _delete_chunk(table: OwnedTable, tenant_id: str) -> int:
    with transaction.atomic():
        rows = table.rows(tenant_id)
        # Whoever holds a row is not waited for: the numberer may be dropping the same ones.
        locked = rows.order_by("pk").select_for_update(skip_locked=True, of=("self",))
        keys = list(locked.values_list("pk", flat=True)[:CHUNK_ROWS])
        if not keys:
            if rows.exists():
                raise PurgeBlocked
            return 0
        chosen: models.QuerySet[Any] = models.QuerySet(table.model).filter(pk__in=keys)
        if getattr(table.model, "is_recorded", False):
            # Around the signals on purpose: there is no log any more. The marks that this leaves go last.
            chosen._raw_delete(chosen.db)
        else:
            chosen.delete()
    return len(keys)


def _end_sessions(tenant_id: str) -> None:
    """Delete the sessions of the tenant's staff: no column says whose a session is."""
    staff = {str(key) for key in Staff.objects.filter(tenant=tenant_id).values_list("pk", flat=True)}
    for session in Session.objects.iterator() if staff else ():
        if session.get_decoded().get(SESSION_KEY) in staff:
            session.delete()


@unit_of_work
def _end(tenant_id: str) -> None:
    """Put the tombstone in the place of the tenant; its foreign keys prove that no row was left."""
    FormerTenant.objects.get_or_create(pk=tenant_id)
    Tenant.objects.filter(pk=tenant_id).delete()
    forget_hosts()
