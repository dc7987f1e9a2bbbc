"""The progress of a redelivery, on the page of its job."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from events.models import EventStream
from foundation.admin.panels import Panel, figures
from identity.models import Job
from provisioning.admin.dead_letter_search import address_of
from provisioning.admin.outcomes.redelivery_feedback import obstacle_of
from provisioning.dead_letters.redelivery_jobs import progress_of


def redelivery_progress(site: admin.AdminSite, _request: HttpRequest, job: Job) -> Panel:
    """Return the number of dead letters per result, and the actor of the job."""
    progress, asked = progress_of(job), job.parameters
    obstacle = obstacle_of(EventStream.objects.of(job.tenant_id).filter(pk=job.target).first()) if progress.under_way else ""
    lanes = f"Queued again. They wait, because {obstacle}" if obstacle else "Queued again"
    rows = [
        ("Selected", progress.total, "Dead letters when the job was created; later dead letters are not included"),
        ("Left", progress.left, "Not queued again yet"),
        ("Waiting", progress.under_way, lanes),
        ("Done", progress.done, "Delivered, or skipped because nothing had to change"),
        ("Superseded", progress.superseded, "Not sent, because a newer event of the same user was written"),
        ("Failed again", progress.failed, "Dead letters again"),
        ("Blocked", progress.blocked, "Deletions of users that were created again; redeliver them by force"),
        ("Skipped", progress.skipped, "Already redelivered or resolved before the job reached them"),
        ("Rate", f"{asked.get('rate')} per second", "Upper limit"),
        ("Started by", asked.get("actor") or "-", asked.get("reason") or ""),
    ]
    letters = f"{reverse(f'{site.name}:provisioning_deadletter_changelist')}?{address_of(stream_id=job.target)}"
    return figures("Redelivery", rows, more_url=letters, more_text="Dead letters of the stream")
