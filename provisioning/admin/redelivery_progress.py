"""How a redelivery goes on, on the page of its job."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse

from foundation.admin.panels import Panel, figures
from identity.models import Job
from provisioning.admin.dead_letter_search import address_of
from provisioning.dead_letters.redelivery_jobs import progress_of


def redelivery_progress(site: admin.AdminSite, job: Job) -> Panel:
    """Say what became of the letters, and who asked for it."""
    progress, asked = progress_of(job), job.parameters
    rows = [
        ("Chosen", progress.total, "Dead letters when the job was made; later ones are not taken"),
        ("Left", progress.left, "Not put back yet"),
        ("Under way", progress.under_way, "Back in their places, waiting for their turn"),
        ("Done", progress.done, "The destination took them, or had nothing to do"),
        ("Superseded", progress.superseded, "A newer event was written meanwhile; nothing was sent"),
        ("Failed again", progress.failed, "Dead letters once more"),
        ("Blocked", progress.blocked, "Deletions of users that exist again: they need force"),
        ("Skipped", progress.skipped, "Somebody else had redelivered them"),
        ("Rate", f"{asked.get('rate')} a second", "At most"),
        ("Asked for by", asked.get("actor") or "-", asked.get("reason") or ""),
    ]
    letters = f"{reverse(f'{site.name}:provisioning_deadletter_changelist')}?{address_of(stream_id=job.target)}"
    return figures("Redelivery", rows, more_url=letters, more_text="Dead letters of the stream")
