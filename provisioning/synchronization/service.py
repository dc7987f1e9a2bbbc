"""Starts, answers and cancels synchronizations and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from django.db import transaction
from django.db.models import QuerySet

from events.log.numbering import number_tenant
from events.models import EventStream, Head
from foundation.database.transactions import unit_of_work
from identity.models import Job
from identity.services.failures import Conflict, Invalid, NotFound
from identity.services.jobs import let_people_cancel, send_after_commit
from provisioning.engine.streams import locked_stream, synchronization_target
from provisioning.models.synchronizations import SynchronizationRow
from provisioning.synchronization import phases
from provisioning.synchronization.bound_setup import setup_of_stream
from provisioning.synchronization.plan import Plan, PlanRefused, checked
from provisioning.synchronization.state import outcomes_of

TYPES = (Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION)
let_people_cancel(*TYPES)
_UNFINISHED = (Job.Status.PENDING, Job.Status.PROCESSING)


def start(*, tenant_id: str, stream_id: str, plan: Plan, actor: str) -> Job:
    """Return a pending job that synchronizes every user of the stream's connections with the server of the stream, or only compares users
    and accounts.

    The stream's cursor is taken before any user is read. Raises `NotFound`, `Invalid` for an invalid plan, and `NotSupported` if the stream
    has no SCIM server. Raises `Conflict` while another synchronization or comparison of the stream runs, and for a plan that enables a
    stream that is already enabled.
    """
    try:
        plan = checked(plan)
    except PlanRefused as refused:
        raise Invalid({refused.name: [str(refused)]}) from refused
    # First give positions to earlier events, so that these events are before the cursor; the job reads their users in the new state.
    number_tenant(tenant_id)
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        _check(stream, plan)
        head = Head.objects.get(pk=tenant_id)
        job = Job(
            tenant_id=tenant_id,
            type=Job.Type.STREAM_RECONCILIATION if plan.only_reports else Job.Type.STREAM_SYNCHRONIZATION,
            target=synchronization_target(stream_id),
            parameters={
                "stream_id": stream_id,
                "plan": plan.as_document(),
                "actor": actor[:254],
                "position": head.position,
                "epoch": head.epoch,
                "phase": phases.FIRST,
            },
        )
        job.save(force_insert=True)
        send_after_commit(job)
    return job


def of_stream(*, tenant_id: str, stream_id: str) -> QuerySet[Job]:
    """Return the synchronizations and comparisons of a stream, newest first."""
    return _jobs(tenant_id).filter(target=synchronization_target(stream_id)).order_by("-created_at")


def found(*, tenant_id: str, job_id: str) -> Job:
    """Return one synchronization or comparison; raise `NotFound`."""
    job = _jobs(tenant_id).filter(pk=job_id).first()
    if job is None:
        raise NotFound("The synchronization does not exist.")
    return job


@unit_of_work
def resume(*, tenant_id: str, job_id: str, actor: str) -> Job:
    """Continue a stopped synchronization where it stopped, and store the actor. Raises `NotFound`, and `Conflict` if the job has ended or
    does not wait for this answer."""
    return _answer(_locked(tenant_id, job_id), phases.RESUME, resumed_by=actor[:254])


@unit_of_work
def confirm_deletions(*, tenant_id: str, job_id: str, actor: str) -> Job:
    """Approve the deletions of a waiting synchronization. Raises the exceptions of `resume`."""
    return _answer(_locked(tenant_id, job_id), phases.CONFIRMATION, is_confirmed=True, confirmed_by=actor[:254])


@unit_of_work
def decline_deletions(*, tenant_id: str, job_id: str, actor: str) -> Job:
    """End a waiting synchronization without its deletions. Raises the exceptions of `resume`."""
    return _answer(_locked(tenant_id, job_id), phases.CONFIRMATION, phase=phases.LAST, declined_by=actor[:254])


def report_lines(job: Job) -> Iterator[bytes]:
    """Yield the report as JSON lines: first the plan and the counts, then one line per stored user."""
    plan = job.parameters["plan"]
    first = {"job": job.pk, "stream": job.parameters["stream_id"], "plan": plan, "status": job.status, "outcomes": outcomes_of(job)}
    yield orjson.dumps(first) + b"\n"
    for row in report_rows(job).iterator(chunk_size=500):
        yield orjson.dumps(row_document(row)) + b"\n"


def report_rows(job: Job) -> QuerySet[SynchronizationRow]:
    """Return the stored rows of users in the order of their examination."""
    return SynchronizationRow.objects.filter(job=job).order_by("pk")


def row_document(row: SynchronizationRow) -> dict[str, Any]:
    """Return one user of the report as JSON; members that do not apply are omitted."""
    members = {
        "outcome": row.outcome,
        "user_id": row.user_id,
        "scim_id": row.scim_id,
        "reason": row.reason,
        "error_class": row.error_class,
        "differences": row.differences,
    }
    return {name: value for name, value in members.items() if value}


def _check(stream: EventStream, plan: Plan) -> None:
    setup_of_stream(stream)
    if plan.enables_stream and stream.status == EventStream.Status.ENABLED:
        raise Conflict("The stream is enabled already. Disable it first, or synchronize without enabling it at the end.")
    if _jobs(stream.tenant_id).filter(target=synchronization_target(stream.pk), status__in=_UNFINISHED).exists():
        raise Conflict("A synchronization of this stream is already running. Wait for it, resume it or cancel it.")


def _jobs(tenant_id: str) -> QuerySet[Job]:
    return Job.objects.of(tenant_id).filter(type__in=TYPES)


def _locked(tenant_id: str, job_id: str) -> Job:
    job = _jobs(tenant_id).select_for_update(no_key=True).filter(pk=job_id).first()
    if job is None:
        raise NotFound("The synchronization does not exist.")
    if job.is_finished:
        raise Conflict("The synchronization has ended.")
    return job


def _answer(job: Job, question: str, **progress: Any) -> Job:
    if job.parameters.get("waits_for") != question:
        raise Conflict("The synchronization does not wait for this answer.")
    saves = job.parameters.get("saves", 0) + 1
    job.parameters = {**job.parameters, "waits_for": "", "tries": 0, "saves": saves, **progress}
    job.status_details, job.lease_until = "", None
    job.save(update_fields=["parameters", "status_details", "lease_until", "updated_at"])
    send_after_commit(job)
    return job
