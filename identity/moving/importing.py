"""Reads an archive into this installation.

1. Check everything that may prevent the import: bytes, migrations, settings, keys, and names that are taken. Nothing is written so far.
2. Create the tenant with the status `arriving`, in which its hosts answer 503 and no worker works for it, and reserve primary keys.
3. Insert part after part. The transaction of a part also stores the number of inserted parts, so a killed import continues after the last
   inserted part.
4. Compare counts and digests of all tables, and decrypt every encrypted value once.

`open_tenant` lets the tenant run. Until then `remove_tenant` deletes every row of the tenant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection, models, transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from foundation import failpoints
from foundation.database.transactions import lock_name, unit_of_work
from identity.audit.entries import record
from identity.hosts import forget_hosts
from identity.models import Tenant, TenantMove
from identity.moving.archive import Archive, Part
from identity.moving.carrying import carriage
from identity.moving.facts import is_resumable, refusals
from identity.moving.failures import BadArchive, MoveRefused
from identity.moving.journey import receipt_digest
from identity.moving.rows import Summary, fill_late, insert, reserve, summary_at_target, without_time_limit
from identity.moving.sealing import seal_again, secret_sum, secrets_of
from identity.moving.tables import CarriedTable, Offsets, Shift, carried_tables
from identity.services.failures import NotFound
from identity.services.saving import validated_save
from identity.services.tenant_life import locked_tenant

Progress = Callable[[str, int], None]


def import_tenant(archive: Archive, *, progress: Progress) -> None:
    """Import an archive, or continue its import. Raises `MoveRefused` and `BadArchive`."""
    if reasons := refusals(archive):
        raise MoveRefused(" ".join(reasons))
    if not is_resumable(archive):
        for _ in archive.check_parts():
            pass
        begin(archive)
    for part in archive.parts[: TenantMove.objects.get(pk=archive.tenant_id).parts_done]:
        progress(part.table, 0 if part.is_late else part.rows)
    with without_time_limit():
        while done := _import_next(archive):
            failpoints.reach("tenant_part_imported")
            progress(done.table, 0 if done.is_late else done.rows)
        verify(archive)


@unit_of_work
def begin(archive: Archive) -> None:
    """Create the tenant and reserve its primary keys. Raises `MoveRefused` if the tenant exists here by now."""
    lock_name("tenant imports")
    if Tenant.objects.filter(pk=archive.tenant_id).exists():
        raise MoveRefused(f"A tenant with the id {archive.tenant_id} exists here.")
    facts = archive.facts
    columns = {name: _moment(name, value) for name, value in facts["tenant"].items()}
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        # Insert the tenant with SQL, because the signals of a new tenant would create a log and keys. The archive contains the log and the
        # keys.
        cursor.execute(
            f"INSERT INTO {Tenant._meta.db_table} (id, status, {names}) VALUES (%s, %s{', %s' * len(columns)})",  # noqa: S608  (names of the schema)
            [archive.tenant_id, Tenant.Status.ARRIVING, *columns.values()],
        )
    TenantMove.objects.create(
        tenant_id=archive.tenant_id,
        direction=TenantMove.Direction.IN,
        archive_id=archive.archive_id,
        earlier_status=facts["earlier_status"],
        offsets=_reserved(facts["tables"]),
        receipt_digest=receipt_digest(archive.journey.receipt),
    )
    forget_hosts()


def verify(archive: Archive) -> None:
    """Compare the imported rows with the archive, and decrypt every encrypted value. Raises `BadArchive`."""
    move = TenantMove.objects.get(pk=archive.tenant_id)
    offsets = _offsets(move)
    wrong = [table.name for table in carried_tables() if not _is_whole(archive, table, offsets)]
    if wrong:
        raise BadArchive(
            f"The imported rows of {', '.join(wrong)} differ from the rows of the source. Remove the import: "
            f"manage.py tenants remove {archive.tenant_id}"
        )
    TenantMove.objects.filter(pk=archive.tenant_id).update(is_verified=True)


@unit_of_work
def open_tenant(*, tenant_id: str, receipt: str) -> str:
    """Let an imported tenant run here, with the status that it had at the source; return the status.

    Raises `NotFound`. Raises `MoveRefused` for an import that is not verified, and for a receipt that the source did not print.
    """
    tenant = locked_tenant(tenant_id)
    move = TenantMove.objects.filter(pk=tenant_id, direction=TenantMove.Direction.IN).first()
    if tenant.status != Tenant.Status.ARRIVING or move is None:
        raise MoveRefused(f"The tenant {tenant_id} is {tenant.status}; only an imported tenant can be opened.")
    if not move.is_verified:
        raise MoveRefused("The import is not complete. Run the import again to continue it.")
    if receipt_digest(receipt) != move.receipt_digest:
        raise MoveRefused("This is not the receipt that `manage.py tenants hand-over` prints at the source for this archive.")
    tenant.status = move.earlier_status
    validated_save(tenant, fields=["status"])
    move.delete()
    record("Opened the tenant after its move", about=tenant)
    forget_hosts()
    return tenant.status


def _import_next(archive: Archive) -> Part | None:
    """Insert the next part in one transaction. Returns None if all parts are here."""
    tables = {table.name: table for table in carried_tables()}
    with transaction.atomic():
        move = TenantMove.objects.select_for_update().filter(pk=archive.tenant_id).first()
        if move is None or str(move.archive_id) != archive.archive_id:
            raise NotFound("The import was removed.")
        if move.parts_done == len(archive.parts):
            return None
        part = archive.parts[move.parts_done]
        _insert(archive, part, tables[part.table], _offsets(move))
        for model in carriage().filled_by_triggers:
            # A trigger has written a mark for each inserted row, as if an event were missing. The archive contains the events, so delete
            # the marks.
            marks: models.QuerySet[Any] = models.QuerySet(model).filter(tenant_id=archive.tenant_id)
            marks._raw_delete(marks.db)
        move.parts_done += 1
        # Update the row without a signal, because the audit log needs no entry for each part.
        TenantMove.objects.filter(pk=move.pk).update(parts_done=move.parts_done, updated_at=timezone.now())
        failpoints.reach("tenant_part_importing")
    return part


def _insert(archive: Archive, part: Part, table: CarriedTable, offsets: Offsets) -> None:
    contents = archive.contents(part)
    stored = fill_late(table, contents.rows, offsets) if part.is_late else insert(table, contents.rows, offsets)
    if stored != part.rows:
        raise BadArchive(f"The part {part.name} has {stored} rows instead of {part.rows}.")
    if contents.secrets:
        seal_again(table, contents.secrets, offsets.get(table.name) if table.is_shifted else None)


def _is_whole(archive: Archive, table: CarriedTable, offsets: Offsets) -> bool:
    theirs = Summary(**archive.facts["tables"][table.name])
    ours = summary_at_target(table, archive.tenant_id, offsets)
    if (ours.rows, ours.digest) != (theirs.rows, theirs.digest):
        return False
    if not table.sealed:
        return True
    expected = archive.facts["secrets"].get(table.name, [0, ""])
    shift = offsets.get(table.name) if table.is_shifted else None
    count, total = secret_sum(archive.journey, secrets_of(table, archive.tenant_id), shift)
    return count == expected[0] and (count == 0 or total == expected[1])


def _reserved(tables: dict[str, Any]) -> dict[str, list[int]]:
    """Reserve primary keys for every table with rows whose keys come from a sequence."""
    offsets = {}
    for table in carried_tables():
        summary = Summary(**tables[table.name])
        if table.is_shifted and summary.first is not None and summary.last is not None:
            offsets[table.name] = [summary.first, summary.last, reserve(table, summary.first, summary.last)]
    return offsets


def _offsets(move: TenantMove) -> dict[str, Shift]:
    return {name: Shift(*values) for name, values in move.offsets.items()}


def _moment(name: str, value: Any) -> Any:
    return parse_datetime(value) if name.endswith("_at") and value is not None else value
