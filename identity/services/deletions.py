"""Delete rows on which much hangs: at once when it is little, else in chunks that a job carries on.

1. The first transaction locks the row and deletes a chunk of what hangs on it. When that was all, the row goes with it.
2. Otherwise it marks the row and makes a job. A marked row refuses changes and everything new.
3. The job deletes a chunk per transaction, each with its events, and in the last one the row itself.

A service registers what hangs on its kind of row with `deletion_of`. Stopped anywhere, the job goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models.deletion import ProtectedError
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.models import Job
from identity.models.base import DeletedInParts
from identity.services.failures import BeingDeleted, NotFound
from identity.services.jobs import send_after_commit, step_of, unfinished

# Rows of one transaction: a fraction of a second of work, and the longest that other writers wait.
CHUNK_ROWS = 200

# Deletes up to so many rows of what hangs on a locked row, in the written order; returns how many went, 0 when none is left.
Empty = Callable[[Any, int], int]
# Counts what hangs on a row, under the words that people read.
Count = Callable[[Any], dict[str, int]]


@dataclass(frozen=True)
class Deletion:
    """How one kind of row is deleted."""

    job_type: Job.Type
    model: Any
    missing: str
    empty: Empty
    count: Count

    @unit_of_work
    def start(self, *, tenant_id: str, key: str) -> Job | None:
        """Delete the row, or mark it and return the job that goes on with it; raise `NotFound`.

        Called again it returns the same job, and a new one when that one has failed.
        """
        row = self.locked(tenant_id, key)
        if row is None:
            raise NotFound(self.missing)
        if row.is_being_deleted:
            return unfinished(tenant_id, self.job_type).filter(target=key).first() or self._make_job(row, 0)
        deleted, is_gone = self.next_chunk(row)
        if is_gone:
            return None
        row.deletion_started_at = timezone.now()
        row.save(update_fields=["deletion_started_at"])
        return self._make_job(row, deleted)

    def next_chunk(self, row: Any, limit: int | None = None) -> tuple[int, bool]:
        """Delete up to a chunk of what hangs on a locked row, and the row when nothing is left; return the count, and whether it went."""
        deleted, limit = 0, limit or CHUNK_ROWS
        while deleted < limit:
            count = self.empty(row, limit - deleted)
            if not count:
                return deleted, _is_deleted(row)
            deleted += count
        return deleted, False

    def next_of(self, rows: models.QuerySet[Any], limit: int) -> int:
        """Delete up to a chunk of the first of several rows of this kind; return how many rows went, 0 when there is none."""
        while (found := rows.order_by("pk").values_list("tenant_id", "pk").first()) is not None:
            row = self.locked(*found)
            if row is not None:
                deleted, is_gone = self.next_chunk(row, limit)
                return deleted + is_gone
        return 0

    def locked(self, tenant_id: str, key: str) -> Any:
        """Return the row locked until the transaction ends, marked or not; None when it is gone."""
        return self.model.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=key).first()

    def step(self, job: Job) -> bool:
        """Do the next chunk of a job; a row that somebody else has deleted meanwhile ends it."""
        row = self.locked(job.tenant_id, job.target)
        if row is None:
            return False
        deleted, is_gone = self.next_chunk(row)
        count_deleted(job, deleted)
        return not is_gone

    def _make_job(self, row: Any, deleted: int) -> Job:
        total = deleted + sum(self.count(row).values())
        return make_deletion_job(self.job_type, row.tenant_id, row.pk, deleted=deleted, total=total, name=str(row))


_deletions: dict[type[models.Model], Deletion] = {}


def deletion_of(model: type[models.Model], job_type: Job.Type, *, missing: str, empty: Empty, count: Count) -> Deletion:
    """Register how rows of `model` are deleted, and return it."""
    deletion = Deletion(job_type, model, missing, empty, count)
    step_of(job_type)(deletion.step)
    _deletions[model] = deletion
    return deletion


def what_hangs_on(row: models.Model) -> dict[str, int]:
    """Return how many rows of each kind go with this one, those kinds left out of which there are none."""
    return {name: number for name, number in _deletions[type(row)].count(row).items() if number}


def deletion_job(tenant_id: str, target: str) -> Job | None:
    """Return the newest job that deletes a row, finished or not."""
    return Job.objects.of(tenant_id).filter(target=target).first()


def percentage(job: Job) -> int:
    """Return how much of a deletion is done; all of it only when it is."""
    if job.status == Job.Status.COMPLETED:
        return 100
    total = max(job.summary.get("total", 0), 1)
    return int(min(99, 100 * job.summary.get("deleted", 0) // total))


def refuse_if_being_deleted(row: DeletedInParts) -> None:
    """Raise `BeingDeleted` for a row to which nothing may be added, and of which nothing may change.

    The row needs no lock: what slips in beside the first chunk is found by a later one, or by the foreign key at the
    last one's commit, which then runs again.
    """
    if row.is_being_deleted:
        raise BeingDeleted(f"The {row._meta.verbose_name} {row} is being deleted.")


def make_deletion_job(job_type: Job.Type, tenant_id: str, target: str, *, deleted: int, total: int, name: str) -> Job:
    """Make the job of a deletion that has begun; the workers hear of it after the commit."""
    summary = {"total": max(total, deleted), "deleted": deleted}
    job = Job.objects.of(tenant_id).create(tenant_id=tenant_id, type=job_type, target=target, summary=summary, parameters={"name": name})
    send_after_commit(job)
    return job


def count_deleted(job: Job, deleted: int) -> None:
    """Add to what a locked job has deleted; the engine saves it with the chunk."""
    done = job.summary.get("deleted", 0) + deleted
    job.summary = {"total": max(job.summary.get("total", 0), done), "deleted": done}


def _is_deleted(row: Any) -> bool:
    try:
        row.delete()
    except ProtectedError:
        # Something was added in between; it goes with the next chunk.
        return False
    return True
