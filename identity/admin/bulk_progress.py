"""The progress of a bulk act on the page of its job, and the permission to see it."""

from __future__ import annotations

from typing import TypeVar

from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from foundation.acting import of_document
from foundation.admin.keyset_list import FOUND
from foundation.admin.panels import Panel, figures
from identity.admin.scope import staff_of, tenant_in_scope
from identity.models import Job
from identity.services.bulk_acts import acted_models

_JOBS_SHOWN = 5
Row = TypeVar("Row", bound=models.Model)


def title_of(job: Job) -> str:
    """Return the description of a bulk act, with the number of its rows."""
    return str(job.parameters["label"]).replace(" selected ", f" {job.summary.get('total', 0):,} ")


def only_visible(request: HttpRequest, rows: models.QuerySet[Row], *, job: str = "") -> models.QuerySet[Row]:
    """Return the rows, except rows of bulk acts on models that the account may not see. `job` is the prefix of lookups that lead from a row
    to its job.
    """
    staff = staff_of(request)
    hidden = [
        model._meta.label_lower
        for model in acted_models()
        if staff is None or not staff.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")
    ]
    if not hidden:
        return rows
    return rows.exclude(**{f"{job}type": Job.Type.BULK_ACTION, f"{job}parameters__model__in": sorted(hidden)})


def jobs_at_work(request: HttpRequest, model: type[models.Model]) -> list[tuple[Job, str]]:
    """Return the newest unfinished bulk acts on rows of this model in the tenant in scope, each with its description."""
    tenant = tenant_in_scope(request)
    if tenant is None or model not in acted_models():
        return []
    # Unfinished jobs are few, and an index finds them. They are sorted by time below, because a query in the order of `created_at` could
    # read all jobs.
    waiting = Job.objects.of(tenant).filter(status__in=(Job.Status.PENDING, Job.Status.PROCESSING)).order_by("status", "lease_until")
    label = model._meta.label_lower
    found = [job for job in waiting[:FOUND] if job.type == Job.Type.BULK_ACTION and job.parameters.get("model") == label]
    found.sort(key=lambda job: job.created_at, reverse=True)
    return [(job, title_of(job)) for job in found[:_JOBS_SHOWN]]


def bulk_progress(_request: HttpRequest, job: Job) -> Panel:
    """Return the panel with the selection, the author and the results of a bulk act."""
    by = of_document(job.parameters["by"], job=job.pk)
    counts = {name: int(job.summary.get(name, 0)) for name in ("total", "done", "failed", "gone")}
    rows = [
        ("Selected", f"{counts['total']:,}", "Rows that were selected when the job started"),
        ("Done", f"{counts['done']:,}", ""),
        ("Failed", f"{counts['failed']:,}", "Not changed, for the reasons below"),
        ("Already deleted", f"{counts['gone']:,}", "Deleted by another request before the job processed them"),
        ("Left", f"{counts['total'] - job.rows_done:,}", "Not processed and not changed" if job.is_finished else "Not processed yet"),
        ("Started by", by.actor.name, f"from {by.ip}" if by.ip else ""),
        ("Reason", by.reason or "-", ""),
    ]
    audit = f"{reverse('admin:identity_auditentry_changelist')}?{urlencode({'act': str(by.id)})}"
    return figures("Action on many rows", rows, more_url=audit, more_text="All changes of this job in the audit log")
