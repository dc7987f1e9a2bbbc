"""An act on many rows as a job: the rows are frozen when it begins, each goes through its service, and it ends at any time.

1. `start_bulk_job` keeps the keys of the rows, in order, with who asks, from where and why.
2. A step does some rows and moves the job on, in one transaction. A worker that dies has done all of that or nothing.
3. Each step asks anew whether the account may still do it. A row that is refused is noted, and the others go on.
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

# More rows than this are no choice that somebody can answer for, and their keys would fill the table of jobs.
MOST_ROWS = 1_000_000
_KEYS_PER_CHUNK = 1000
_CHUNK_CHARACTERS = 256 * 1024
# A step ends after so many rows or so much time: so long a row waits that it has changed, and so long a cancellation.
_ROWS_PER_STEP = 100
_STEP_SECONDS = 1.0
# No statement of a row takes longer, so that one row does not use up the time of a task again and again.
_STATEMENT_SECONDS = 12.0


class NoSuchAct(NotSupported):
    """This service knows the action no more."""


class NotAllowedAnyMore(ServiceError):
    """The account that began it may not do it any more."""


class NobodyActs(NotSupported):
    """Somebody has to answer for it: it begins on a page of the admin."""


@transaction.atomic
def start_bulk_job(*, tenant_id: str, act: BulkAct, rows: models.QuerySet[Any]) -> Job:
    """Freeze which rows are chosen now and return the pending job; rows of other tenants among them are left out.

    The present act says who asks, from where and why, and is what the job goes on with. Raises `NobodyActs` without one,
    and `NotSupported` for more than `MOST_ROWS` rows.
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
    """Do the next rows of a job whose row is locked, as the person who began it; return False when none is left."""
    act = act_named(job.parameters["act"])
    if act is None:
        raise NoSuchAct
    by = of_document(job.parameters["by"], job=job.pk)
    if not act.is_allowed(Staff.objects.filter(pk=by.actor.id).first(), job.tenant_id):
        raise NotAllowedAnyMore(f"{by.actor.name} may not do this any more; what was done stays done.")
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
    """Yield the keys in their order, so that two jobs on the same rows never wait for each other in a ring."""
    keys = rows.select_related(None).order_by("pk").values_list("pk", flat=True)
    for number, key in enumerate(keys.iterator(chunk_size=_KEYS_PER_CHUNK)):
        if number >= MOST_ROWS:
            raise NotSupported(f"More than {MOST_ROWS:,} rows match: narrow the list first.")
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
    """Do it to one row, and undo it alone where it fails; return what to count it as."""
    if row is None:
        return "gone"
    # A row that goes loses its key.
    named = {"name": str(row), "id": str(row.pk)}
    try:
        with transaction.atomic():
            act_on(act, row)
    except ServiceError as refusal:
        problem = {"code": type(refusal).__name__, "message": str(refusal)}
    except (OperationalError, InterfaceError, SoftTimeLimitExceeded) as error:
        if not isinstance(error.__cause__, QueryCanceled):
            # A deadlock, a lost connection, or the end of the worker's patience: the whole step is run again.
            raise
        problem = {"code": "TookTooLong", "message": f"It took longer than {_STATEMENT_SECONDS:g} seconds, and was undone."}
    except Exception as error:
        # One odd row must not hold up the others.
        logger.exception("job %s: row %s failed", job.pk, number)
        problem = {"code": type(error).__name__, "message": "An unexpected error; the log of the workers has it."}
    else:
        return "done"
    if failed < settings.IMPORT_ERRORS_KEPT:
        JobError.objects.create(job=job, row_number=number, user=named, errors=[problem])
    return "failed"
