"""Enables a stream at the cursor that was taken before the users were read, so that changes made meanwhile are delivered."""

from __future__ import annotations

from events.models import Head
from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import Pause
from provisioning.engine import streams, superseding

_LANES_AT_ONCE = 500
_LOOK_AGAIN_SECONDS = 2.0


class CursorGone(ServiceError):
    """The stream was not enabled: its log was restored or pruned beyond the cursor of the job. Run the synchronization again."""


def enable_at_cursor(job: Job) -> str | Pause:
    """Enable the stream at the cursor of the job, inside the caller's transaction; return a sentence for the job's details.

    First supersedes waiting deliveries of the disabled stream, because they are older than the written profiles and would overwrite these
    profiles. Returns a `Pause` while an attempt of the stream runs. Raises `CursorGone`.
    """
    position, epoch, stream_id = job.parameters["position"], job.parameters["epoch"], job.parameters["stream_id"]
    head = Head.objects.filter(pk=job.tenant_id).first()
    if head is None or head.epoch != epoch or head.floor > position or head.position < position:
        raise CursorGone
    stream = streams.locked_stream(tenant_id=job.tenant_id, stream_id=stream_id)
    if stream.status == stream.Status.ENABLED:
        return "The stream was already enabled."
    while superseding.supersede_disabled(stream_id, through=position, limit=_LANES_AT_ONCE):
        pass
    if superseding.is_under_way(stream_id):
        # An attempt that began before the stream was disabled still runs, and may write an older profile. Wait until it has ended.
        return Pause(_LOOK_AGAIN_SECONDS)
    streams.enable_stream_at(tenant_id=job.tenant_id, stream_id=stream_id, position=position)
    return f"The stream is enabled at position {position:,}, the head before the first user was read."
