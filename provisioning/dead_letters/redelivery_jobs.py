"""Redelivers many dead letters as a job. The job includes only dead letters that exist when it is created. The rate of the job is limited,
and staff can cancel the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from identity.models import Job
from identity.services.failures import Conflict, Invalid
from identity.services.jobs import Pause, send_after_commit, step_of, unfinished
from provisioning.dead_letters import redelivery
from provisioning.dead_letters.selections import Selection
from provisioning.engine.streams import locked_stream
from provisioning.models import DeadLetter

__all__ = ["RATE_PER_SECOND", "Progress", "Selection", "progress_of", "redeliver_next", "start_redelivery_job", "unfinished_redelivery_job"]

RATE_PER_SECOND = 50
FASTEST_RATE = 100
# Seconds between chunks. A chunk has as many dead letters as the requested rate allows in this time.
_PAUSE_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    """The number of dead letters per result so far.

    `superseded` counts events that were not sent, because a newer event of the user was written. `blocked` counts deletions that need
    `force`, because the user exists again.
    """

    total: int
    left: int
    under_way: int
    done: int
    failed: int
    superseded: int
    blocked: int
    skipped: int


@transaction.atomic
def start_redelivery_job(
    *,
    tenant_id: str,
    stream_id: str,
    selection: Selection,
    actor: str,
    reason: str = "",
    force: bool = False,
    rate_per_second: int = RATE_PER_SECOND,
) -> Job:
    """Create a job that redelivers the selected dead letters that are not delivered yet, at `rate_per_second`; return the pending job.

    Later dead letters, including those caused by this job, are not included. Raises `NotFound`, `Invalid` for an invalid rate, and
    `Conflict` while another redelivery job of the stream runs.
    """
    if not 1 <= rate_per_second <= FASTEST_RATE:
        raise Invalid({"rate_per_second": [f"1 to {FASTEST_RATE} letters per second."]})
    locked_stream(tenant_id=tenant_id, stream_id=stream_id)
    if unfinished_redelivery_job(tenant_id=tenant_id, stream_id=stream_id) is not None:
        raise Conflict("Another job is already redelivering failed events of this stream. Wait until it has ended.")
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.EVENT_REDELIVERY,
        target=stream_id,
        parameters={
            "selection": selection.as_document(),
            "frozen_at": timezone.now().isoformat(),
            "actor": actor,
            "reason": reason,
            "force": force,
            "rate": rate_per_second,
        },
        summary={"total": selection.of(tenant_id=tenant_id, stream_id=stream_id).count(), "redelivered": 0, "skipped": 0},
    )
    job.save(force_insert=True)
    send_after_commit(job)
    return job


def unfinished_redelivery_job(*, tenant_id: str, stream_id: str) -> Job | None:
    """Return the running redelivery job of this stream, or None."""
    return unfinished(tenant_id, Job.Type.EVENT_REDELIVERY).filter(target=stream_id).first()


@step_of(Job.Type.EVENT_REDELIVERY, may_be_cancelled=True)
def redeliver_next(job: Job) -> bool | Pause:
    """Put the next dead letters back into their lanes. The dead letters of a user keep their order.

    In the `summary` of the job, a dead letter that was already redelivered counts as skipped. The deletion of a user who exists again
    counts as blocked.
    """
    asked = job.parameters
    letters = _left(job)
    count = max(1, min(redelivery.CHUNK, round(asked["rate"] * _PAUSE_SECONDS)))
    chunk = list(letters.values_list("pk", "key", "position")[:count])
    if not chunk:
        return False
    order = redelivery.Order(asked["actor"], asked["reason"], force=asked["force"], job_id=job.pk)
    done = redelivery.redeliver_letters(tenant_id=job.tenant_id, letter_ids=[pk for pk, _, _ in chunk], order=order)
    job.parameters = {**asked, "after": chunk[-1][1:]}
    counted = {"redelivered": done.count, "skipped": len(chunk) - done.count - done.blocked}
    if done.blocked:
        counted["blocked"] = done.blocked
    job.summary = {**job.summary, **{name: job.summary.get(name, 0) + more for name, more in counted.items()}}
    return Pause(_PAUSE_SECONDS)


def progress_of(job: Job) -> Progress:
    """Count the dead letters of the job by result. Dead letters that remained when the job was canceled count as `left`."""
    rows = (
        DeadLetter.objects.filter(tenant_id=job.tenant_id, redelivery_job=job.pk).values_list("state", "resolution").annotate(Count("pk"))
    )
    counts = {(state, resolution): count for state, resolution, count in rows}
    under_way = sum(count for (state, _), count in counts.items() if state == DeadLetter.State.REDELIVERED)
    superseded = counts.get((DeadLetter.State.RESOLVED, "superseded"), 0)
    done = sum(counts.get((DeadLetter.State.RESOLVED, outcome), 0) for outcome in ("delivered", "skipped"))
    summary = {name: int(job.summary.get(name, 0)) for name in ("total", "redelivered", "skipped", "blocked")}
    return Progress(
        total=summary["total"],
        left=max(summary["total"] - summary["redelivered"] - summary["skipped"] - summary["blocked"], 0),
        under_way=under_way,
        done=done,
        # A dead letter that failed again still counts as failed if an administrator resolves it later, because its event was not delivered.
        failed=sum(counts.values()) - under_way - superseded - done,
        superseded=superseded,
        blocked=summary["blocked"],
        skipped=summary["skipped"],
    )


def _left(job: Job) -> QuerySet[Any]:
    """Return the dead letters of the job after the last processed one, ordered by lane and position: older events of a user come first."""
    asked = job.parameters
    letters = Selection.of_document(asked["selection"]).of(tenant_id=job.tenant_id, stream_id=job.target)
    letters = letters.filter(created_at__lte=datetime.fromisoformat(asked["frozen_at"])).annotate(position=F("delivery__position"))
    if "after" in asked:
        key, position = asked["after"]
        # Every row that meets the second condition also meets the first one. The first condition is still needed, because only it can use
        # the index by key.
        letters = letters.filter(Q(key__gte=key) & (Q(key__gt=key) | Q(key=key, position__gt=position)))
    return letters.order_by("key", "position")
