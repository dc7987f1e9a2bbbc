"""Run jobs: a chunk is one transaction that also moves the job on, so a job that is stopped anywhere goes on where it was.

Each type of job registers its step; who works on a job holds a lease that the sweep of the workers watches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, models
from django.db.models.functions import Now
from django.utils import timezone

from identity.models import Job
from identity.services.failures import ServiceError
from identity.transactions import unit_of_work

logger = logging.getLogger(__name__)

# Does the next chunk of a job whose row is locked; False when nothing was left to do.
Step = Callable[[Job], bool]

LEASE = timedelta(seconds=60)
# So often a chunk may fail for a reason nobody foresaw; the lease is the pause in between.
FAILURE_LIMIT = 5
_TAKEN_AT_ONCE = 50
_UNFINISHED = (Job.Status.PENDING, Job.Status.PROCESSING)

_steps: dict[str, Step] = {}


def step_of(job_type: Job.Type) -> Callable[[Step], Step]:
    """Register the decorated function as the step of a type of job."""

    def register(step: Step) -> Step:
        _steps[job_type] = step
        return step

    return register


def unfinished(tenant_id: str, job_type: Job.Type) -> models.QuerySet[Job]:
    """Return the tenant's jobs of one type that still have something to do."""
    return Job.objects.of(tenant_id).filter(type=job_type, status__in=_UNFINISHED)


def run_job(job_id: str, *, chunks: int | None = None) -> bool:
    """Work through up to `chunks` chunks of a job; return whether it is finished. Running it twice does no harm.

    A chunk that is refused fails the job with the reason. Other errors are raised and counted, but those of the database;
    the fifth one fails the job.
    """
    done = 0
    try:
        while chunks is None or done < chunks:
            if not run_next_chunk(job_id):
                return True
            done += 1
    except ServiceError as refusal:
        _fail(job_id, str(refusal))
        return True
    except DatabaseError:
        raise
    except Exception as error:
        _count_failure(job_id, error)
        raise
    return False


@unit_of_work
def run_next_chunk(job_id: str) -> bool:
    """Do the job's next chunk and renew its lease; return False when nothing was left, and the job is completed.

    The job's row is locked, so two workers never do one chunk twice.
    """
    job = Job.all_tenants.select_for_update(no_key=True, of=("self",)).select_related("connection").get(pk=job_id)
    if job.is_finished:
        return False
    job.started_at = job.started_at or timezone.now()
    goes_on = _steps[job.type](job)
    job.failures = 0
    job.status = Job.Status.PROCESSING if goes_on else Job.Status.COMPLETED
    job.lease_until = timezone.now() + LEASE if goes_on else None
    job.finished_at = None if goes_on else timezone.now()
    job.save()
    return goes_on


@unit_of_work
def take_unattended_jobs() -> list[str]:
    """Return the jobs that nobody works on, each leased for a minute to whoever is sent to it.

    These are the pending ones, and those whose worker let its lease run out.
    """
    idle = models.Q(lease_until__isnull=True) | models.Q(lease_until__lt=Now())
    jobs = Job.all_tenants.filter(idle, type__in=list(_steps), status__in=_UNFINISHED).select_for_update(skip_locked=True)
    taken = list(jobs.values_list("pk", flat=True)[:_TAKEN_AT_ONCE])
    Job.all_tenants.filter(pk__in=taken).update(lease_until=timezone.now() + LEASE)
    return taken


@unit_of_work
def _fail(job_id: str, reason: str) -> None:
    _end_as_failed(Job.all_tenants.select_for_update(no_key=True).get(pk=job_id), reason)


@unit_of_work
def _count_failure(job_id: str, error: Exception) -> None:
    job = Job.all_tenants.select_for_update(no_key=True).get(pk=job_id)
    job.failures += 1
    logger.warning("job %s failed for the %s. time: %s", job_id, job.failures, type(error).__name__)
    if job.failures >= FAILURE_LIMIT:
        _end_as_failed(job, f"Stopped after {FAILURE_LIMIT} unexpected errors ({type(error).__name__}); the log of the workers has them.")
    else:
        job.save(update_fields=["failures", "updated_at"])


def _end_as_failed(job: Job, reason: str) -> None:
    job.status = Job.Status.FAILED
    job.status_details = reason[:500]
    job.lease_until = None
    job.finished_at = timezone.now()
    job.save()
