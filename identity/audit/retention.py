"""Deletes entries of the audit log that are older than the retention, in chunks.

Only one other operation deletes entries: if an imported tenant is removed before it is opened, the entries that the import has copied are
deleted (`identity.moving.leaving`)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from identity.audit.entries import record
from identity.models import AuditEntry
from identity.stopped_tenants import STOPPED_TENANTS

_AT_ONCE = 5_000


def prune_audit_log() -> int:
    """Delete the entries that are older than `AUDIT_RETENTION_DAYS`, and return their number. For each chunk, a new entry says how many
    entries were deleted.

    The trigger permits the deletion of an entry only if the entry is older than the time that the transaction has set. The trigger never
    permits the deletion of entries of the last thirty days.
    """
    before = timezone.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS)
    total = 0
    while count := _prune_some(before.isoformat()):
        total += count
    return total


def _prune_some(before: str) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('identity.audit_prune_before', %s, true)", [before])
        cursor.execute(
            # Entries of the platform have no tenant.
            "DELETE FROM identity_auditentry WHERE id IN (SELECT id FROM identity_auditentry WHERE at < %s::timestamptz"  # noqa: S608
            f" AND (tenant_id IS NULL OR tenant_id NOT IN ({STOPPED_TENANTS})) ORDER BY at, id LIMIT %s)",
            [before, _AT_ONCE],
        )
        count = int(cursor.rowcount)
        if count:
            record("Pruned the audit log", entries=count, older_than=before)
        cursor.execute("SELECT set_config('identity.audit_prune_before', '', true)")
    return count


def is_guarded() -> bool:
    """Tell whether the triggers that protect the audit log exist and are enabled."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname LIKE 'identity_audit_%%' AND tgenabled <> 'D'",
            [AuditEntry._meta.db_table],
        )
        return bool(cursor.fetchone()[0] == _TRIGGERS)


_TRIGGERS = 2
