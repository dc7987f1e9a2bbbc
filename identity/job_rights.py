"""Whose work a job is: which scopes of the management interface read it, and which permission of staff ends it."""

from __future__ import annotations

from identity.models import Job

_OF_STREAMS = frozenset({Job.Type.EVENT_REDELIVERY, Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION})
_STREAM_SCOPES = ("read:event_streams", "update:event_streams")
_USER_SCOPES = ("create:users", "read:users")
_REDELIVERY_SCOPES = ("read:event_deliveries", "update:event_deliveries", *_STREAM_SCOPES)
ANY_READER = tuple(dict.fromkeys((*_USER_SCOPES, *_STREAM_SCOPES, *_REDELIVERY_SCOPES)))


def readers_of(job: Job) -> tuple[str, ...]:
    """Return the scopes of which one is enough to read the job: those of users, or of streams for what works on streams."""
    if job.type == Job.Type.EVENT_REDELIVERY:
        return _REDELIVERY_SCOPES
    return _STREAM_SCOPES if job.type in _OF_STREAMS else _USER_SCOPES


def permission_to_end(job: Job) -> str:
    """Return the permission that staff needs to cancel the job, or to answer what it waits for: of a bulk action that of the action."""
    if job.type == Job.Type.BULK_ACTION:
        return str(job.parameters["permission"])
    return "events.change_eventstream" if job.type in _OF_STREAMS else "identity.change_job"
