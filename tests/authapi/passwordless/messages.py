"""Messages that were sent to a user, decrypted as in the worker."""

from __future__ import annotations

from authapi.accounts.passwordless.codes import Contents
from authapi.accounts.passwordless.messages import contents_of
from identity.models import Job
from identity.services.jobs import run_job


def jobs_of(tenant_id: str) -> list[Job]:
    """Return the jobs that send the requested codes and links of the tenant, oldest first."""
    return list(Job.objects.of(tenant_id).filter(type=Job.Type.PASSWORDLESS_CODE).order_by("created_at", "pk"))


def last_contents(tenant_id: str) -> Contents:
    """Return the code or the link of the newest message."""
    return contents_of(jobs_of(tenant_id)[-1])


def deliver(tenant_id: str) -> None:
    """Run every job as the workers do: first the job that finds the account and queues the message, then the job that sends the message."""
    for job in [*jobs_of(tenant_id), *jobs_of(tenant_id)]:
        run_job(job.pk)
    for message in Job.objects.of(tenant_id).filter(type=Job.Type.MESSAGE).order_by("created_at", "pk"):
        run_job(message.pk)


def last_code(tenant_id: str) -> str:
    return last_contents(tenant_id).code


def wrong(code: str, *, by: int = 1) -> str:
    """Return a different code of the same length."""
    return f"{(int(code) + by) % 10 ** len(code):0{len(code)}d}"
