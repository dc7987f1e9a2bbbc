"""Gives up a tenant at the source of a move, and deletes the rows of a tenant that has moved or whose import is undone."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection, transaction

from foundation import failpoints
from foundation.database.transactions import unit_of_work
from identity.audit.entries import record
from identity.hosts import forget_hosts
from identity.models import AuditEntry, Tenant, TenantMove
from identity.moving.archive import Archive
from identity.moving.failures import MoveRefused
from identity.services.saving import validated_save
from identity.services.tenant_life import locked_tenant
from identity.services.tenant_purge import end_staff_sessions, purge_chunk

_ENTRIES_AT_ONCE = 5_000
_REMOVABLE = (Tenant.Status.ARRIVING, Tenant.Status.MOVED)


@unit_of_work
def hand_over(archive: Archive) -> str:
    """Mark the tenant as moved: it runs nowhere until it is opened at the target with the receipt. Return the receipt.

    A repeated call returns the same receipt.

    Raises `NotFound`, and `MoveRefused` if the archive was not made during the present stop.
    """
    tenant = locked_tenant(archive.tenant_id)
    move = TenantMove.objects.filter(pk=tenant.pk, direction=TenantMove.Direction.OUT).first()
    if move is None or tenant.status not in (Tenant.Status.STOPPED, Tenant.Status.MOVED):
        raise MoveRefused(f"The tenant {tenant.pk} is {tenant.status}; only a tenant that was stopped and exported can be handed over.")
    if str(move.archive_id) != archive.archive_id:
        raise MoveRefused("The tenant has run since this archive was made, or the archive is not complete. Export the tenant again.")
    if tenant.status == Tenant.Status.STOPPED:
        tenant.status = Tenant.Status.MOVED
        validated_save(tenant, fields=["status"])
        record("Handed the tenant over to another installation", about=tenant, archive=archive.archive_id)
        forget_hosts()
    return archive.journey.receipt


def remove_tenant(*, tenant_id: str, progress: Callable[[int], None]) -> None:
    """Delete the rows of a tenant that has moved or whose import is undone, in chunks, without events. A repeated call continues.

    At the source, entries of the audit log stay until their own retention ends. At the target, the entries are copies and are deleted.
    Raises `NotFound`, and `MoveRefused` for any other tenant.
    """
    status = _require_removable(tenant_id)
    end_staff_sessions(tenant_id)
    if status == Tenant.Status.ARRIVING:
        while count := _remove_entries(tenant_id):
            progress(count)
    while count := purge_chunk(tenant_id):
        failpoints.reach("tenant_chunk_removed")
        progress(count)
    _end(tenant_id, status)


@unit_of_work
def _require_removable(tenant_id: str) -> str:
    tenant = locked_tenant(tenant_id)
    if tenant.status not in _REMOVABLE:
        raise MoveRefused(f"The tenant {tenant_id} is {tenant.status}; only a tenant that is arriving or moved can be removed.")
    if tenant.status == Tenant.Status.MOVED:
        record("Removed the rows of the tenant, which has moved", about=tenant)
    # An import that still runs stops at its next part.
    TenantMove.objects.filter(pk=tenant_id, direction=TenantMove.Direction.IN).update(archive_id=None)
    return str(tenant.status)


def _remove_entries(tenant_id: str) -> int:
    """Delete a chunk of the imported entries. If the tenant was here before, its entries from that time stay: they have other keys."""
    table = AuditEntry._meta.db_table
    move = TenantMove.objects.filter(pk=tenant_id).first()
    if move is None or table not in move.offsets:
        return 0
    first, last, offset = move.offsets[table]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('identity.audit_removed_import', %s, true)", [tenant_id])
        own = f"SELECT id FROM {table} WHERE tenant_id = %s AND id BETWEEN %s AND %s LIMIT %s"  # noqa: S608  (a name of the schema)
        cursor.execute(f"DELETE FROM {table} WHERE id IN ({own})", [tenant_id, first + offset, last + offset, _ENTRIES_AT_ONCE])  # noqa: S608
        return int(cursor.rowcount)


@unit_of_work
def _end(tenant_id: str, status: str) -> None:
    Tenant.objects.filter(pk=tenant_id, status=status).delete()
    forget_hosts()
