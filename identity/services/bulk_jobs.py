"""Runs an act on many rows as a job. The rows are fixed at the start, each row is changed through its service, and the job can be canceled.

1. `start_bulk_job` stores the keys of the rows, in order, with the actor, the IP address and the reason.
2. One transaction processes some rows and updates the job. If a worker dies, its transaction is committed completely or not at all.
3. Each transaction checks again that the account may do the act. If the service refuses a row, the job stores the reason and continues with
   the next row.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, models, transaction
from psycopg.errors import QueryCanceled

from foundation.acting import acting, as_document, current_act, of_document
from identity.audit.entries import record
from identity.models import Job, JobError, Staff
from identity.services import chunks
from identity.services.bulk_acts import BulkAct, act_named, act_on
from identity.services.failures import NotSupported, ServiceError
from identity.services.jobs import send_after_commit, step_of

logger = logging.getLogger(__name__)

# The maximum number of rows of a job. Staff could not review more rows, and the keys of more rows would fill the table of jobs.
MOST_ROWS = 1_000_000
_KEYS_PER_CHUNK = 1000
_CHUNK_CHARACTERS = 256 * 1024
# Bounds of one transaction, in rows and time. Changed rows stay locked until the transaction ends, and a cancellation waits that long.
_ROWS_PER_STEP = 100
_STEP_SECONDS = 1.0
# Timeout of each statement, so that one slow row cannot exhaust the time limit of the task again and again.
_STATEMENT_SECONDS = 12.0


class NoSuchAct(NotSupported):
    """The service no longer has this act."""


class NotAllowedAnyMore(ServiceError):
    """The account that started the job may no longer do this act."""


class NobodyActs(NotSupported):
    """Only staff can start this act, on a page of the admin."""


@transaction.atomic
def start_bulk_job(*, tenant_id: str, act: BulkAct, rows: models.QuerySet[Any]) -> Job:
    """Store the keys of the selected rows and return the pending job. Leaves out rows of other tenants.

    The job continues with the actor, IP address and reason of the present act. Raises `NobodyActs` without a present act of staff, and
    `NotSupported` for more than `MOST_ROWS` rows.
    """
    present = current_act()
    if present is None or present.actor.kind != "staff":
        raise NobodyActs
    named = {"act": act.key, "label": act.label, "model": act.model._meta.label_lower, "permission": act.permission}
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.BULK_ACTION,
        parameters={**named, "by": as_document(present), "next": 0},
        summary={"total": 0, "done": 0, "failed": 0, "gone": 0},
    )
    with acting(None):
        job.save(force_insert=True)
        chosen = rows.filter(**{act.tenant_path: tenant_id})
        job.summary["total"] = chunks.store_rows(job, _keys(chosen), most_rows=_KEYS_PER_CHUNK, most_characters=_CHUNK_CHARACTERS)
        job.save(update_fields=["summary", "updated_at"])
    record(act.label, about=job, rows=job.summary["total"])
    send_after_commit(job)
    return job


@step_of(Job.Type.BULK_ACTION, may_be_cancelled=True)
def act_on_next(job: Job) -> bool:
    """Process the next rows of a job, on behalf of the account that started the job. Returns False if no row is left.

    The caller has locked the row of the job.
    """
    act = act_named(job.parameters["act"])
    if act is None:
        raise NoSuchAct
    by = of_document(job.parameters["by"], job=job.pk)
    if not act.is_allowed(Staff.objects.filter(pk=by.actor.id).first(), job.tenant_id):
        raise NotAllowedAnyMore(f"{by.actor.name} may no longer do this. Finished rows stay changed.")
    chunk = job.chunks.filter(is_done=False).first()
    if chunk is None:
        return False
    first, keys = chunks.rows_of(chunk)
    begun = job.parameters["next"]
    with acting(by):
        counts = _act_on_some(job, act, list(enumerate(keys, start=first))[begun - first :][:_ROWS_PER_STEP])
    job.summary = {name: job.summary.get(name, 0) + counts[name] for name in ("total", "done", "failed", "gone")}
    job.parameters = {**job.parameters, "next": begun + sum(counts.values())}
    if job.parameters["next"] >= first + len(keys):
        chunks.clear(chunk)
    return True


def _keys(rows: models.QuerySet[Any]) -> Iterator[str]:
    """Yield the keys in key order, so that two jobs on the same rows cannot deadlock."""
    keys = rows.select_related(None).order_by("pk").values_list("pk", flat=True)
    for number, key in enumerate(keys.iterator(chunk_size=_KEYS_PER_CHUNK)):
        if number >= MOST_ROWS:
            raise NotSupported(f"More than {MOST_ROWS:,} rows match. Narrow the list first.")
        yield str(key)


def _act_on_some(job: Job, act: BulkAct, numbered: list[tuple[int, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    found = {str(row.pk): row for row in act.rows_of(job.tenant_id).filter(pk__in=[key for _, key in numbered])}
    ends = time.monotonic() + _STEP_SECONDS
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", [int(_STATEMENT_SECONDS * 1000)])
    for number, key in numbered:
        failed = job.summary["failed"] + counts["failed"]
        counts[_act_on_one(job, act, number, found.get(key), failed=failed)] += 1
        if time.monotonic() >= ends:
            break
    return counts


def _act_on_one(job: Job, act: BulkAct, number: int, row: models.Model | None, *, failed: int) -> str:
    """Do the act on one row; a failure rolls back only this row. Returns the name of the count to increment."""
    if row is None:
        return "gone"
    # A deleted row loses its key, so read the key before the act.
    named = {"name": str(row), "id": str(row.pk)}
    try:
        with transaction.atomic():
            act_on(act, row)
    except ServiceError as refusal:
        problem = {"code": type(refusal).__name__, "message": str(refusal)}
    except (OperationalError, InterfaceError, SoftTimeLimitExceeded) as error:
        if not isinstance(error.__cause__, QueryCanceled):
            # After a deadlock, a lost connection or the task's time limit, the whole transaction is repeated.
            raise
        problem = {"code": "TookTooLong", "message": f"The action took longer than {_STATEMENT_SECONDS:g} seconds and was undone."}
    except Exception as error:
        # An unexpected error of one row must not stop the other rows.
        logger.exception("job %s: row %s failed", job.pk, number)
        problem = {"code": type(error).__name__, "message": "An unexpected error. See the log of the workers."}
    else:
        return "done"
    if failed < settings.IMPORT_ERRORS_KEPT:
        JobError.objects.create(job=job, row_number=number, user=named, errors=[problem])
    return "failed"
