"""Runs jobs. Each chunk is one transaction that also updates the job, so an interrupted job resumes after its last chunk.

Each type of job registers its step. The worker of a job has a lease; the sweep finds expired leases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, models
from django.db.models.functions import Now
from django.utils import timezone

from foundation.acting import acting
from foundation.database.transactions import after_commit, unit_of_work
from foundation.hooks import job_waits
from identity.models import Job
from identity.services.failures import Conflict, NotFound, NotSupported, ServiceError
from identity.stopped_tenants import is_stopped, of_running_tenants

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pause:
    """Result of a step that must wait: the sweep sends the job again after this time."""

    seconds: float


# A function that processes the next chunk of a job whose row is locked. It returns False if no chunk is left.
Step = Callable[[Job], bool | Pause]
# A function that does the work of a job outside the database (`has_effect_due`). A crash or a pause may repeat the work.
Effect = Callable[[Job], Pause | None]

LEASE = timedelta(seconds=60)
# Number of unexpected errors of a chunk before its job fails. After an error, the job runs again when its lease has expired.
FAILURE_LIMIT = 5
_TAKEN_AT_ONCE = 50
_UNFINISHED = (Job.Status.PENDING, Job.Status.PROCESSING)

# Types with a time limit, because a tenant waits for the result. Deletions have no time limit.
_BOUNDED = (Job.Type.USERS_IMPORT, Job.Type.USERS_EXPORT)

_steps: dict[str, Step] = {}
_effects: dict[str, Effect] = {}
_cancellable: set[str] = set()


class JobTookTooLong(ServiceError):
    """The job took longer than its time limit."""


def step_of(job_type: Job.Type, *, may_be_cancelled: bool = False) -> Callable[[Step], Step]:
    """Register the decorated function as the step of a type of job. `may_be_cancelled` lets staff end the job between two chunks."""

    def register(step: Step) -> Step:
        _steps[job_type] = step
        if may_be_cancelled:
            _cancellable.add(job_type)
        return step

    return register


def let_people_cancel(*job_types: Job.Type) -> None:
    """Allow staff to cancel jobs of these types.

    Used for types whose steps only workers load. Web processes do not load these steps, but their pages show whether a job can be canceled.
    """
    _cancellable.update(job_types)


def effect_of(job_type: Job.Type) -> Callable[[Effect], Effect]:
    """Register the decorated function as the effect of a type of job: its work outside the database, with no transaction open."""

    def register(effect: Effect) -> Effect:
        _effects[job_type] = effect
        return effect

    return register


def unfinished(tenant_id: str, job_type: Job.Type) -> models.QuerySet[Job]:
    """Return the unfinished jobs of one type of the tenant."""
    return Job.objects.of(tenant_id).filter(type=job_type, status__in=_UNFINISHED)


def end_other_jobs(job: Job, reason: str) -> None:
    """Fail every other unfinished job of the tenant. Waits for the present chunk of each job."""
    for other in Job.objects.of(job.tenant_id).filter(status__in=_UNFINISHED).exclude(pk=job.pk).order_by("pk"):
        _fail(other.pk, reason)


def can_be_cancelled(job: Job) -> bool:
    """Tell whether `cancel_job` would end the job now."""
    return job.type in _cancellable and not job.is_finished


@unit_of_work
def cancel_job(*, tenant_id: str, job_id: str, actor: str) -> Job:
    """End a job after its present chunk. Finished chunks stay done. The job counts as failed, and its details name `actor`.

    Raises `NotFound`, `NotSupported` for a type of job that cannot be canceled, and `Conflict` for a job that has ended.
    """
    job = Job.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=job_id).first()
    if job is None:
        raise NotFound("The job does not exist.")
    if job.type not in _cancellable:
        raise NotSupported("A job of this type cannot be canceled.")
    if job.is_finished:
        raise Conflict("The job has ended already.")
    _end(job, f"Canceled by {actor}.")
    return job


def send_after_commit(job: Job) -> None:
    """Send a nudge for the job to the workers, after the surrounding transaction commits. If the nudge is lost, the sweep finds the job."""
    after_commit(job_waits.send, sender=Job, job_id=job.pk)


def run_job(job_id: str, *, chunks: int | None = None) -> bool:
    """Process up to `chunks` chunks of a job. Returns whether no work is left for now. Running a job twice does no harm.

    Work that a chunk requests outside the database is done after its commit. If a service refuses a chunk, the job fails with the reason.
    Any other error is raised. Errors other than errors of the database are also counted, and the fifth counted error fails the job.
    """
    done = 0
    try:
        # The audit log has an entry for the start of the job. The job's own changes have no actor, even if the job runs on a command line.
        with acting(None):
            while chunks is None or done < chunks:
                goes_on = run_next_chunk(job_id)
                if not _do_effect(job_id) or not goes_on:
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
    """Process the job's next chunk and renew its lease.

    Returns False if the job is completed or must wait, or if its tenant is stopped.

    The job's row is locked, so two workers never process the same chunk.
    """
    job = Job.all_tenants.select_for_update(no_key=True, of=("self",)).select_related("connection").get(pk=job_id)
    if job.is_finished or is_stopped(job.tenant_id):
        return False
    job.started_at = job.started_at or timezone.now()
    if job.type in _BOUNDED and timezone.now() - job.started_at > timedelta(seconds=settings.JOB_MAX_SECONDS):
        raise JobTookTooLong(f"The job took longer than {settings.JOB_MAX_SECONDS} seconds.")
    outcome = _steps[job.type](job)
    pause = timedelta(seconds=outcome.seconds) if isinstance(outcome, Pause) else LEASE
    job.failures = 0
    job.status = Job.Status.PROCESSING if outcome else Job.Status.COMPLETED
    job.lease_until = timezone.now() + pause if outcome or job.has_effect_due else None
    job.finished_at = None if outcome else timezone.now()
    job.save()
    return outcome is True


@unit_of_work
def take_unattended_jobs() -> list[str]:
    """Return the ids of jobs without a worker, each leased for one minute to the worker that will receive it.

    These are pending jobs, jobs whose lease has expired, and finished jobs with work left outside the database. Jobs of stopped
    tenants wait.
    """
    idle = models.Q(lease_until__isnull=True) | models.Q(lease_until__lt=Now())
    waiting = models.Q(status__in=_UNFINISHED) | models.Q(has_effect_due=True)
    jobs = of_running_tenants(Job.all_tenants.filter(idle & waiting, type__in=list(_steps))).select_for_update(skip_locked=True)
    taken = list(jobs.values_list("pk", flat=True)[:_TAKEN_AT_ONCE])
    Job.all_tenants.filter(pk__in=taken).update(lease_until=timezone.now() + LEASE)
    return taken


def _do_effect(job_id: str) -> bool:
    """Run the due effect. Returns False if the effect must be repeated later."""
    job = Job.all_tenants.select_related("connection", "tenant").filter(pk=job_id, has_effect_due=True).first()
    if job is None:
        return True
    if is_stopped(job.tenant_id):
        return False
    pause = _effects[job.type](job)
    if pause is not None:
        job.lease_until = timezone.now() + timedelta(seconds=pause.seconds)
        job.save(update_fields=["lease_until", "updated_at"])
        return False
    job.has_effect_due = False
    job.failures = 0
    job.lease_until = None if job.is_finished else timezone.now() + LEASE
    job.save(update_fields=["has_effect_due", "failures", "lease_until", "updated_at"])
    return True


@unit_of_work
def _fail(job_id: str, reason: str) -> None:
    _end(Job.all_tenants.select_for_update(no_key=True).get(pk=job_id), reason)


@unit_of_work
def _count_failure(job_id: str, error: Exception) -> None:
    job = Job.all_tenants.select_for_update(no_key=True).get(pk=job_id)
    job.failures += 1
    logger.warning("job %s failed for the %s. time: %s", job_id, job.failures, type(error).__name__)
    if job.failures >= FAILURE_LIMIT:
        _end(job, f"Stopped after {FAILURE_LIMIT} unexpected errors ({type(error).__name__}). See the log of the workers.")
    else:
        job.save(update_fields=["failures", "updated_at"])


def _end(job: Job, reason: str) -> None:
    """End the job. An unfinished job fails. A finished job only loses its effect."""
    if not job.is_finished:
        job.status = Job.Status.FAILED
        job.finished_at = timezone.now()
        # Delete the rest of an import and the pieces of an incomplete export, because nothing uses them.
        job.chunks.all().delete()
        job.users.all().delete()
    job.has_effect_due = False
    job.status_details = reason[:500]
    job.lease_until = None
    # The sealed content of a message is no longer needed.
    job.parameters.pop("sealed", None)
    job.save()
