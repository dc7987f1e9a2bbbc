"""Redelivering many dead letters as a job: a selection that is frozen when it is made, paced, and stopped at any time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from identity.models import Job
from identity.services.failures import Conflict
from identity.services.jobs import Pause, send_after_commit, step_of, unfinished
from provisioning import redelivery
from provisioning.models import DeadLetter
from provisioning.streams import locked_stream

RATE_PER_SECOND = 50
# So much is put back at once, then the job rests: workers take a pause of the sweep to come back to it.
_PAUSE_SECONDS = 2.0


@dataclass(frozen=True)
class Selection:
    """Which dead letters of a stream; everything open when nothing is named. `created_to` is excluded."""

    created_from: datetime | None = None
    created_to: datetime | None = None
    event_types: tuple[str, ...] = ()
    fingerprint: str = ""

    def of(self, *, tenant_id: str, stream_id: str) -> QuerySet[DeadLetter]:
        """Return the open letters of the selection."""
        letters = DeadLetter.objects.filter(tenant_id=tenant_id, stream_id=stream_id, state=DeadLetter.State.OPEN)
        if self.created_from is not None:
            letters = letters.filter(delivery__created_at__gte=self.created_from)
        if self.created_to is not None:
            letters = letters.filter(delivery__created_at__lt=self.created_to)
        if self.event_types:
            letters = letters.filter(event_type__in=self.event_types)
        if self.fingerprint:
            letters = letters.filter(fingerprint=self.fingerprint)
        return letters

    def as_document(self) -> dict[str, Any]:
        """Return the selection as it is kept with its job."""
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items() if value}

    @classmethod
    def of_document(cls, document: dict[str, Any]) -> Selection:
        """Read what `as_document` returned."""
        moments = {name: datetime.fromisoformat(document[name]) for name in ("created_from", "created_to") if name in document}
        return cls(**moments, event_types=tuple(document.get("event_types", ())), fingerprint=document.get("fingerprint", ""))


@transaction.atomic
def start_redrive(
    *,
    tenant_id: str,
    stream_id: str,
    selection: Selection,
    actor: str,
    reason: str = "",
    force: bool = False,
    rate_per_second: int = RATE_PER_SECOND,
) -> Job:
    """Redeliver what is open and selected now, `rate_per_second` letters at a time; return the pending job.

    Letters that are written later, also by this very job, are not touched. Raises `NotFound`, or `Conflict` while
    another such job of the stream is at work.
    """
    locked_stream(tenant_id=tenant_id, stream_id=stream_id)
    if unfinished(tenant_id, Job.Type.EVENT_REDELIVERY).filter(target=stream_id).exists():
        raise Conflict("Failed events of this stream are being redelivered already; wait for that job to end.")
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


@step_of(Job.Type.EVENT_REDELIVERY)
def redeliver_next(job: Job) -> bool | Pause:
    """Put the next letters back into their lanes, each user's in order; `summary` counts those that were open no more as skipped."""
    asked = job.parameters
    letters = _left(job)
    count = max(1, min(redelivery.CHUNK, round(asked["rate"] * _PAUSE_SECONDS)))
    chunk = list(letters.values_list("pk", "key", "position")[:count])
    if not chunk:
        return False
    done = redelivery.redeliver(
        tenant_id=job.tenant_id,
        letter_ids=[pk for pk, _, _ in chunk],
        actor=asked["actor"],
        reason=asked["reason"],
        force=asked["force"],
    )
    job.parameters = {**asked, "after": chunk[-1][1:]}
    job.summary = {
        **job.summary,
        "redelivered": job.summary["redelivered"] + done,
        "skipped": job.summary["skipped"] + len(chunk) - done,
    }
    return Pause(_PAUSE_SECONDS)


def _left(job: Job) -> QuerySet[Any]:
    """Return the frozen letters behind the last one, by lane and position: a user's older event goes first."""
    asked = job.parameters
    letters = Selection.of_document(asked["selection"]).of(tenant_id=job.tenant_id, stream_id=job.target)
    letters = letters.filter(created_at__lte=datetime.fromisoformat(asked["frozen_at"])).annotate(position=F("delivery__position"))
    if "after" in asked:
        key, position = asked["after"]
        letters = letters.filter(Q(key__gt=key) | Q(key=key, position__gt=position))
    return letters.order_by("key", "position")
