"""The lease of a synchronization. Only the process that has the lease works on the job; it renews the lease with each save."""

from __future__ import annotations

import os
import threading
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from identity.models import Job

# The duration of the lease. It must be longer than the work on one user: at most four examinations (see `users`), each within
# `DELIVERY_BUDGET_SECONDS`.
HELD_FOR = timedelta(seconds=60)
_HOST = uuid.uuid4().hex


def mark() -> dict[str, Any]:
    """Return members for the parameters of the job. A save with these members renews the lease."""
    return {"holder": _me(), "held_until": (timezone.now() + HELD_FOR).isoformat()}


def take(job: Job) -> None:
    """Take the lease of a job. The caller has locked the row of the job and checked that no process has the lease."""
    job.parameters = {**job.parameters, **mark()}


def is_ours(job: Job) -> bool:
    """Tell whether this thread of this process holds the lease."""
    return bool(job.parameters.get("holder") == _me())


def seconds_taken(job: Job) -> float:
    """Return the seconds for which another process may still have the lease; 0 if no process has it."""
    until = job.parameters.get("held_until")
    if not until or is_ours(job):
        return 0.0
    return max((datetime.fromisoformat(until) - timezone.now()).total_seconds(), 0.0)


def _me() -> str:
    # Include the process id, because forked workers share random values that were drawn at import.
    return f"{_HOST}:{os.getpid()}:{threading.get_ident()}"
