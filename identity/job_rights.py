"""Rights on jobs: the scopes with which clients of the management interface read a job, and the permission with which staff end a job."""

from __future__ import annotations

from identity.models import Job

_OF_STREAMS = frozenset({Job.Type.EVENT_REDELIVERY, Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION})
_STREAM_SCOPES = ("read:event_streams", "update:event_streams")
_USER_SCOPES = ("create:users", "read:users")
_REDELIVERY_SCOPES = ("read:event_deliveries", "update:event_deliveries", *_STREAM_SCOPES)
ANY_READER = tuple(dict.fromkeys((*_USER_SCOPES, *_STREAM_SCOPES, *_REDELIVERY_SCOPES)))


def readers_of(job: Job) -> tuple[str, ...]:
    """Return the scopes that may read the job; one is enough. Jobs on streams need scopes for streams, all others need scopes for users."""
    if job.type == Job.Type.EVENT_REDELIVERY:
        return _REDELIVERY_SCOPES
    return _STREAM_SCOPES if job.type in _OF_STREAMS else _USER_SCOPES


def permission_to_end(job: Job) -> str:
    """Return the permission that staff need to cancel the job or to make the decision that the job waits for.

    A bulk action needs the permission of its action.
    """
    if job.type == Job.Type.BULK_ACTION:
        return str(job.parameters["permission"])
    return "events.change_eventstream" if job.type in _OF_STREAMS else "identity.change_job"
