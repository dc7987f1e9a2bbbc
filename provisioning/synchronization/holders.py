"""Which process works on a synchronization: one at a time, while it saves what it does often enough."""

from __future__ import annotations

import os
import threading
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from identity.models import Job

# Longer than the slowest user may take: a few lookups and writes with a budget each.
HELD_FOR = timedelta(seconds=60)
_HOST = uuid.uuid4().hex


def mark() -> dict[str, Any]:
    """Return what a save writes so that the job stays ours."""
    return {"holder": _me(), "held_until": (timezone.now() + HELD_FOR).isoformat()}


def take(job: Job) -> None:
    """Make the job ours, whose row is locked and which nobody holds."""
    job.parameters = {**job.parameters, **mark()}


def is_ours(job: Job) -> bool:
    """Tell whether this thread of this process took the job."""
    return bool(job.parameters.get("holder") == _me())


def seconds_taken(job: Job) -> float:
    """Return how long somebody else may still hold the job, 0 when nobody does."""
    until = job.parameters.get("held_until")
    if not until or is_ours(job):
        return 0.0
    return max((datetime.fromisoformat(until) - timezone.now()).total_seconds(), 0.0)


def _me() -> str:
    # Forked workers share what was drawn at the import.
    return f"{_HOST}:{os.getpid()}:{threading.get_ident()}"
