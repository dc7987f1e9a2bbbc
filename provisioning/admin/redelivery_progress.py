"""How a redelivery goes on, on the page of its job."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse

from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectActionsAdmin
from identity.models import Job
from provisioning.admin.dead_letter_search import address_of
from provisioning.dead_letters.redelivery_jobs import progress_of


def show_progress(site: admin.AdminSite) -> None:
    """Add the panel to the page of jobs."""
    page = site.get_model_admin(Job)
    if isinstance(page, ObjectActionsAdmin):
        page.panels.append(lambda _request, job: _panel(site, job))


def _panel(site: admin.AdminSite, job: Job) -> Panel | None:
    if job.type != Job.Type.EVENT_REDELIVERY:
        return None
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
    shown = [tuple(Cell(str(text)) for text in row) for row in rows]
    letters = reverse(f"{site.name}:provisioning_deadletter_changelist")
    return Panel(
        "Redelivery", ("", "", ""), shown, more_url=f"{letters}?{address_of(stream_id=job.target)}", more_text="Dead letters of the stream"
    )
