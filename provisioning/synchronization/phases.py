"""The order of the phases of a synchronization, and what one that waits for a person waits for."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from identity.models import Job
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.state import save

FIRST, ACCOUNTS, DELETIONS, LAST = "users", "accounts", "deletions", "done"
CONFIRMATION, RESUME = "confirmation", "resume"


def following(job: Job) -> dict[str, Any]:
    """Return the progress that begins the phase behind the present one."""
    plan = Plan.of_document(job.parameters["plan"])
    order = [FIRST, ACCOUNTS, *([DELETIONS] if plan.deletes_missing and plan.writes else []), LAST]
    return {"phase": order[order.index(job.parameters["phase"]) + 1], "tries": 0}


def wait_for_person(job: Job, waits_for: str, details: str) -> None:
    """Let the job rest until somebody answers."""
    save(job, waits_for=waits_for, waits_since=timezone.now().isoformat(), details=details)
