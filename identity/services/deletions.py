"""Delete rows that have many dependent rows: at once if there are few, otherwise in chunks by a job.

1. The first transaction locks the row and deletes a chunk of dependents. If no dependent is left, the transaction deletes the row too.
2. Otherwise the transaction sets `deletion_started_at` of the row and creates a job. From then on, services refuse changes of the row and
   new dependents.
3. The job deletes one chunk in each transaction, and records the events of the chunk. The last transaction also deletes the row itself.

A service registers the dependents of its rows with `deletion_of`. The job can be interrupted anywhere and resumes.
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

# Rows per transaction. Other writers wait for at most one transaction, which takes a fraction of a second.
CHUNK_ROWS = 50

# A function that deletes up to the given number of dependents of a locked row, in a fixed order. It returns the number of deleted rows, 0
# if none is left.
Empty = Callable[[Any, int], int]
# A function that counts the dependents of a row, under labels for users.
Count = Callable[[Any], dict[str, int]]


@dataclass(frozen=True)
class Deletion:
    """How rows of one model are deleted."""

    job_type: Job.Type
    model: Any
    missing: str
    empty: Empty
    count: Count

    @unit_of_work
    def start(self, *, tenant_id: str, key: str) -> Job | None:
        """Delete the row and return None. If the row has too many dependents for one chunk, return the job that deletes the rest. Raises
        `NotFound`.

        A repeated call returns the same job, or a new job if the first job has failed.
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
        """Delete up to a chunk of dependents of a locked row, then the row if none is left. Returns the number of deleted dependents, and
        whether the row itself was deleted."""
        deleted, limit = 0, limit or CHUNK_ROWS
        while deleted < limit:
            count = self.empty(row, limit - deleted)
            if not count:
                return deleted, _is_deleted(row)
            deleted += count
        return deleted, False

    def next_of(self, rows: models.QuerySet[Any], limit: int) -> int:
        """Delete the first of these rows and its dependents, at most one chunk. Returns the number of deleted rows, 0 if none is left."""
        while (found := rows.order_by("pk").values_list("tenant_id", "pk").first()) is not None:
            row = self.locked(*found)
            if row is not None:
                deleted, is_gone = self.next_chunk(row, limit)
                return deleted + is_gone
        return 0

    def locked(self, tenant_id: str, key: str) -> Any:
        """Return the row, even if it is being deleted, and lock it until the transaction ends. Returns None if it does not exist."""
        return self.model.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=key).first()

    def step(self, job: Job) -> bool:
        """Process the next chunk of a job. Returns False once the row is deleted, even if another request has deleted it."""
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
    """Register how rows of `model` are deleted, and return the registration."""
    deletion = Deletion(job_type, model, missing, empty, count)
    step_of(job_type)(deletion.step)
    _deletions[model] = deletion
    return deletion


def what_hangs_on(row: models.Model) -> dict[str, int]:
    """Return the number of dependents that a deletion would delete, by kind. Kinds without dependents are left out."""
    return {name: number for name, number in _deletions[type(row)].count(row).items() if number}


def deletion_job(tenant_id: str, target: str) -> Job | None:
    """Return the newest job that deletes a row, finished or not."""
    return Job.objects.of(tenant_id).filter(target=target).first()


def percentage(job: Job) -> int:
    """Return the progress of a deletion in percent. Only a completed job has 100 percent."""
    if job.status == Job.Status.COMPLETED:
        return 100
    total = max(job.summary.get("total", 0), 1)
    return int(min(99, 100 * job.summary.get("deleted", 0) // total))


def refuse_if_being_deleted(row: DeletedInParts) -> None:
    """Raise `BeingDeleted` if the row is being deleted. Call this before a change of the row, and before a dependent is added.

    The check needs no lock on the row. If a dependent is added at the same time, a later chunk deletes it. If the last chunk runs at that
    time, its commit fails because the dependent refers to the deleted row, and the chunk runs again.
    """
    if row.is_being_deleted:
        raise BeingDeleted(f"The {row._meta.verbose_name} {row} is being deleted.")


def make_deletion_job(job_type: Job.Type, tenant_id: str, target: str, *, deleted: int, total: int, name: str) -> Job:
    """Create the job of a deletion that has begun. Workers get a nudge after the commit."""
    summary = {"total": max(total, deleted), "deleted": deleted}
    job = Job.objects.of(tenant_id).create(tenant_id=tenant_id, type=job_type, target=target, summary=summary, parameters={"name": name})
    send_after_commit(job)
    return job


def count_deleted(job: Job, deleted: int) -> None:
    """Add deleted rows to the counts of a locked job. `identity.services.jobs` saves the counts with the chunk."""
    done = job.summary.get("deleted", 0) + deleted
    job.summary = {"total": max(job.summary.get("total", 0), done), "deleted": done}


def _is_deleted(row: Any) -> bool:
    try:
        row.delete()
    except ProtectedError:
        # A dependent was added concurrently; the next chunk deletes it.
        return False
    return True
