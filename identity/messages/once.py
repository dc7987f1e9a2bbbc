"""Sends the message of a job at most once, even if a worker dies (docs/adr/0100).

The provider confirms a message in its response, and no transaction can include both that response and our row. So the job is marked
before the call and settled after it:

1. Commit `sending`, with the time at which the worker must be done.
2. Call the provider.
3. Commit the result: accepted, refused, in doubt, or certainly not accepted. If the provider has certainly not accepted the message, the
   state becomes `waiting` again, for a retry.

A worker that finds `sending` waits until the stored time. After that time, the other worker has died or lost the response, so it is unknown
whether the message was sent. The message is not sent again: a repeated code, or a message that is billed twice, does more harm than a
missing message, which the user can request again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.messages.outcomes import InDoubt, ProviderAway
from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import Pause

_STATE, _UNTIL = "delivery", "sending_until"
WAITING, SENDING, SENT, IN_DOUBT, DROPPED = "waiting", "sending", "sent", "in_doubt", "dropped"
SETTLED = frozenset({SENT, IN_DOUBT, DROPPED})
# Longer than any call to a provider.
_LONGEST_CALL = timedelta(seconds=60)
_GIVEN_UP_AFTER = timedelta(hours=24)
_SHORTEST_SECONDS, _LONGEST_SECONDS = 15.0, 900.0
_IN_DOUBT_TEXT = "The connection ended while the message was handed over. The message may have been sent, so it is not sent again."


class ProviderAwayTooLong(ServiceError):
    """The provider has been unavailable for a day."""


def state_of(job: Job) -> str:
    """Return the sending state of a job."""
    return str(job.summary.get(_STATE, WAITING))


def send_once(job: Job, send: Callable[[], None], *, lasts_until: datetime | None = None) -> Pause | None:
    """Call `send` unless the message is settled or another worker sends it now. Returns how long to wait if a retry is needed.

    `send` may raise `ProviderAway` or `InDoubt`; a `ServiceError` ends the job. After `lasts_until` nothing is sent.
    """
    claimed = _claimed(job, lasts_until)
    if claimed is not None:
        return claimed if isinstance(claimed, Pause) else None
    try:
        send()
    except ProviderAway as away:
        _settle(job, WAITING, str(away))
        return pause_of(job, lasts_until=lasts_until)
    except InDoubt as doubt:
        _settle(job, IN_DOUBT, f"{_IN_DOUBT_TEXT} {doubt}")
        return None
    except ServiceError:
        _settle(job, DROPPED)
        raise
    _settle(job, SENT)
    return None


def pause_of(job: Job, *, lasts_until: datetime | None = None) -> Pause:
    """Return how long a job waits until it calls the provider again: longer each time. Raises `ProviderAwayTooLong` after a day.

    The pause never exceeds the time until `lasts_until`: a code that is valid for five minutes is useless after fifteen.
    """
    now = timezone.now()
    waited = now - job.created_at
    if waited > _GIVEN_UP_AFTER:
        raise ProviderAwayTooLong
    seconds = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, waited.total_seconds() / 2))
    left = (lasts_until - now).total_seconds() if lasts_until is not None else seconds
    return Pause(max(1.0, min(seconds, left)))


@unit_of_work
def _claimed(job: Job, lasts_until: datetime | None) -> Pause | bool | None:
    """Mark the job as `sending` and return None. While another worker sends, return the pause; if nothing is left to do, return True."""
    row = Job.objects.of(job.tenant_id).select_for_update(no_key=True).get(pk=job.pk)
    now = timezone.now()
    state = state_of(row)
    if state in SETTLED:
        return True
    if state == SENDING:
        until = datetime.fromisoformat(row.summary[_UNTIL])
        if until > now:
            return Pause((until - now).total_seconds())
        _write(job, row, IN_DOUBT, _IN_DOUBT_TEXT)
        return True
    if lasts_until is not None and lasts_until <= now:
        _write(job, row, DROPPED, "Not sent: the message expired before the provider accepted it.")
        return True
    row.summary = {**row.summary, _UNTIL: (now + _LONGEST_CALL).isoformat()}
    # Extend the lease of the job, so that the sweep does not give the job to another worker while this worker waits for the provider.
    row.lease_until = now + _LONGEST_CALL
    _write(job, row, SENDING, "")
    return None


@unit_of_work
def _settle(job: Job, state: str, details: str = "") -> None:
    _write(job, Job.objects.of(job.tenant_id).select_for_update(no_key=True).get(pk=job.pk), state, details)


def _write(job: Job, row: Job, state: str, details: str) -> None:
    """Store the state in the locked `row` and in `job`, the caller's copy. A settled job drops its sealed content."""
    row.summary = {**row.summary, _STATE: state}
    row.status_details = details[:500]
    if state in SETTLED:
        row.parameters = {name: value for name, value in row.parameters.items() if name != SEALED}
    row.save(update_fields=["summary", "status_details", "parameters", "lease_until", "updated_at"])
    job.summary, job.status_details, job.parameters, job.lease_until = row.summary, row.status_details, row.parameters, row.lease_until


# Parameter of a job that contains the sealed content.
SEALED = "sealed"
