"""Deletes old jobs in chunks, with their errors and files."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from identity.models import EmailTicket, Job, JobChunk, JobError, JobUser
from identity.stopped_tenants import of_running_tenants

_JOBS_AT_ONCE = 20
_ROWS_AT_ONCE = 2000
_PARTS = (JobChunk, JobError, JobUser)


def prune_jobs() -> int:
    """Delete jobs and tickets that ended more than `JOB_RETENTION_DAYS` ago. Returns the number of jobs.

    The rows of a job are deleted before the job, in separate chunks, so no transaction locks many rows. The next run continues an
    interrupted run.
    """
    before = timezone.now() - timedelta(days=settings.JOB_RETENTION_DAYS)
    count = 0
    while old := list(
        of_running_tenants(Job.all_tenants.filter(finished_at__lt=before))
        .order_by("finished_at")
        .values_list("pk", flat=True)[:_JOBS_AT_ONCE]
    ):
        for part in _PARTS:
            while keys := list(part.objects.filter(job_id__in=old).values_list("pk", flat=True)[:_ROWS_AT_ONCE]):
                part.objects.filter(pk__in=keys).delete()
        with transaction.atomic():
            Job.all_tenants.filter(pk__in=old).delete()
        count += len(old)
    while tickets := list(
        of_running_tenants(EmailTicket.all_tenants.filter(expires_at__lt=before)).values_list("pk", flat=True)[:_ROWS_AT_ONCE]
    ):
        EmailTicket.all_tenants.filter(pk__in=tickets).delete()
    return count
