"""Celery tasks of identity. Arguments are ids only; every task can run twice without harm."""

from __future__ import annotations

from celery import shared_task

from identity.audit.retention import prune_audit_log
from identity.exports import exports  # noqa: F401  (it registers what its jobs do, as do the modules below)
from identity.imports import imports  # noqa: F401
from identity.mail import verification  # noqa: F401
from identity.messages import queue  # noqa: F401
from identity.services import bulk_jobs, row_acts, tenant_deletion  # noqa: F401
from identity.services.job_retention import prune_jobs
from identity.services.jobs import run_job
from identity.services.tenant_purge import PurgeBlocked, due_tenants, purge_tenant

RUN_JOB = "identity.run_job"
# Limits a turn (one run of the task) to some seconds. The rest of the job goes to the end of the queue, so that deliveries do not wait.
_CHUNKS_PER_TURN = 5
_PURGE_SECONDS = 10.0


@shared_task(name=RUN_JOB)
def work_on_job(job_id: str) -> None:
    """Run one turn of a job, then send a message for the rest. The sweep replaces lost messages."""
    if not run_job(job_id, chunks=_CHUNKS_PER_TURN):
        work_on_job.delay(job_id)


@shared_task(name="identity.purge_tenants")
def purge_tenants() -> None:
    """Purge due tenants in sequence for one turn, then send a message for the rest."""
    for tenant_id in due_tenants():
        try:
            is_done = purge_tenant(tenant_id, seconds=_PURGE_SECONDS)
        except PurgeBlocked:
            continue
        if not is_done:
            purge_tenants.delay()
            return


@shared_task(name="identity.prune_jobs")
def prune() -> None:
    """Delete jobs that are older than their retention. The next run continues an interrupted run."""
    prune_jobs()


@shared_task(name="identity.prune_audit_log")
def prune_audit() -> None:
    """Delete entries of the audit log that are older than their retention. The next run continues an interrupted run."""
    prune_audit_log()
