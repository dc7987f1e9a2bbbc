"""The order of the phases of a synchronization, and waiting for an administrator."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from identity.models import Job
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.state import save

FIRST, ACCOUNTS, DELETIONS, LAST = "users", "accounts", "deletions", "done"
CONFIRMATION, RESUME = "confirmation", "resume"


def following(job: Job) -> dict[str, Any]:
    """Return the members of the job's parameters that start the next phase."""
    plan = Plan.of_document(job.parameters["plan"])
    order = [FIRST, ACCOUNTS, *([DELETIONS] if plan.deletes_missing and plan.writes else []), LAST]
    return {"phase": order[order.index(job.parameters["phase"]) + 1], "tries": 0}


def wait_for_person(job: Job, waits_for: str, details: str) -> None:
    """Pause the job until an administrator answers; `waits_for` names the question."""
    save(job, waits_for=waits_for, waits_since=timezone.now().isoformat(), details=details)
