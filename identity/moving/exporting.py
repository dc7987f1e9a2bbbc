"""Writes a stopped tenant to an archive.

1. Compute counts and digests of all tables.
2. Write the rows table by table, in parts. A killed export continues after its last part.
3. Compute counts and digests again. If they differ, rows have changed meanwhile, and the archive is not completed.
4. Write the manifest, and note the archive in the tenant's `TenantMove`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from foundation import failpoints
from foundation.database.transactions import unit_of_work
from identity.models import Job, Staff, Tenant, TenantMove
from identity.moving import archive as archives
from identity.moving.archive import Contents, Draft
from identity.moving.facts import facts_of
from identity.moving.failures import MoveRefused
from identity.moving.journey import Journey
from identity.moving.rows import Cut, Summary, cuts, summary_at_source, without_time_limit
from identity.moving.sealing import add_sums, secret_sum, secrets_of
from identity.moving.stopping import what_still_runs
from identity.moving.tables import CarriedTable, carried_tables
from identity.services.failures import NotFound

# A function that is called with the name of a table and the number of rows that were just exported from it.
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Exported:
    """A complete archive: its id, and its number of parts and rows."""

    archive_id: str
    parts: int
    rows: int


def export_tenant(*, tenant_id: str, directory: Path, key: str, progress: Progress) -> Exported:
    """Export a stopped tenant. Continues an export that was killed. If the archive is already complete, the function only notes it in
    `TenantMove` and returns its id and counts.

    Raises `NotFound`, `MoveRefused` and `BadArchive`.
    """
    tenant = _exportable(tenant_id)
    if archives.is_complete(directory):
        return _completed(tenant_id, directory, key)
    with without_time_limit():
        draft = _draft(tenant_id, directory, key)
        for table in carried_tables():
            _write_rows(draft, table, late=False, progress=progress)
        for table in carried_tables():
            if table.late:
                _write_rows(draft, table, late=True, progress=progress)
        failpoints.reach("tenant_exported")
        _require_unchanged(draft)
        _finish(tenant, draft)
    return Exported(draft.archive_id, len(draft.parts), sum(part.rows for part in draft.parts if not part.is_late))


def counted_rows(tenant_id: str) -> int:
    """Return the number of rows that an export writes, for its progress."""
    return sum(table.owned.rows(tenant_id).count() for table in carried_tables())


def _completed(tenant_id: str, directory: Path, key: str) -> Exported:
    """Accept an archive that a killed export has completed. Raises `MoveRefused` if the tenant has run since."""
    archive = archives.open_archive(directory, key=key)
    if archive.tenant_id != tenant_id or archive.facts["stop"] != _stop(tenant_id):
        raise MoveRefused(f"{directory} contains an archive from an earlier stop. Use another directory, or delete this directory first.")
    TenantMove.objects.filter(pk=tenant_id).update(archive_id=archive.archive_id)
    return Exported(archive.archive_id, len(archive.parts), sum(part.rows for part in archive.parts if not part.is_late))


def _stop(tenant_id: str) -> str:
    """Return the identifier of the present stop. It changes when a tenant is started and stopped again."""
    return TenantMove.objects.get(pk=tenant_id).created_at.isoformat()


def _exportable(tenant_id: str) -> Tenant:
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("The tenant does not exist.")
    if tenant.status != Tenant.Status.STOPPED:
        raise MoveRefused(f"The tenant {tenant_id} is {tenant.status}. Stop it first: manage.py tenants stop {tenant_id}")
    reasons = [*what_still_runs(tenant_id), *_untransferable(tenant_id)]
    if reasons:
        raise MoveRefused(" ".join(reasons))
    return tenant


def _untransferable(tenant_id: str) -> list[str]:
    """Return a sentence for each kind of rows that cannot be exported, because they contain keys of this installation that a move does not
    translate."""
    found = []
    bulk = Job.objects.of(tenant_id).filter(type=Job.Type.BULK_ACTION, status__in=(Job.Status.PENDING, Job.Status.PROCESSING)).count()
    if bulk:
        found.append(f"{bulk} jobs for bulk acts of staff are unfinished. Start the tenant, and let the jobs end, or cancel them.")
    staff = Staff.objects.filter(tenant=tenant_id)
    if staff.filter(groups__isnull=False).exists() or staff.filter(user_permissions__isnull=False).exists():
        found.append(
            "Staff of the tenant have permissions of Django, which this service does not use and does not move. Remove these permissions."
        )
    return found


def _draft(tenant_id: str, directory: Path, key: str) -> Draft:
    if archives.is_begun(directory):
        draft = archives.resume(directory, tenant_id=tenant_id, key=key)
        if draft.stop != _stop(tenant_id):
            raise MoveRefused(f"The export in {directory} was begun before the tenant ran again. Delete the directory, and export again.")
        return draft
    archive_id = str(uuid.uuid4())
    before = {table.name: asdict(summary_at_source(table, tenant_id)) for table in carried_tables()}
    return archives.begin(
        directory, archive_id=archive_id, tenant_id=tenant_id, journey=_journey(key, archive_id), stop=_stop(tenant_id), before=before
    )


def _journey(key: str, archive_id: str) -> Journey:
    try:
        return Journey(key, archive_id)
    except ValueError as error:
        raise MoveRefused(str(error)) from error


def _write_rows(draft: Draft, table: CarriedTable, *, late: bool, progress: Progress) -> None:
    written = [part for part in draft.parts if part.table == table.name and part.is_late == late]
    if written:
        progress(table.name, sum(part.rows for part in written))
    after = written[-1].last if written else None
    for cut in cuts(table, draft.tenant_id, late=late, after=after):
        secrets = [] if late else _secrets(draft, table, cut, after)
        count, total = secret_sum(draft.journey, iter(secrets))
        wire = [[str(key), column, list(pointer), value] for key, column, pointer, value in secrets]
        draft.add(
            Contents(cut.content, wire), table=table.name, is_late=late, rows=cut.rows, last=cut.last, secrets=count, secret_sum=total
        )
        failpoints.reach("tenant_part_exported")
        progress(table.name, cut.rows)
        after = cut.last


def _secrets(draft: Draft, table: CarriedTable, cut: Cut, after: str | None) -> list[Any]:
    return list(secrets_of(table, draft.tenant_id, after=after, last=cut.last)) if table.sealed else []


def _require_unchanged(draft: Draft) -> None:
    """Raise `MoveRefused` if a row has changed since the export began."""
    changed = [table.name for table in carried_tables() if summary_at_source(table, draft.tenant_id) != Summary(**draft.before[table.name])]
    if changed:
        raise MoveRefused(
            f"Rows of {', '.join(changed)} changed during the export. Delete the directory of the archive, and export again while "
            "no administrator of the platform changes the tenant."
        )


@unit_of_work
def _finish(tenant: Tenant, draft: Draft) -> None:
    move = TenantMove.objects.select_for_update().get(pk=tenant.pk)
    facts = facts_of(tenant, draft.journey, earlier_status=move.earlier_status)
    draft.finish({**facts, "stop": draft.stop, "tables": draft.before, "secrets": _secret_sums(draft)})
    move.archive_id = uuid.UUID(draft.archive_id)
    move.save(update_fields=["archive_id", "updated_at"])


def _secret_sums(draft: Draft) -> dict[str, list[Any]]:
    """Return for each table the number of encrypted values, and the sum of their digests."""
    sums: dict[str, list[Any]] = {}
    for name, parts in groupby(sorted(draft.parts, key=lambda part: part.table), key=lambda part: part.table):
        count, total = 0, ""
        for part in parts:
            count, total = count + part.secrets, add_sums(total, part.secret_sum)
        sums[name] = [count, total]
    return sums
