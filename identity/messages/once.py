"""Send what a job sends at most once, also when a worker dies (docs/adr/0100).

A provider that took a message says so in its answer, and nothing can make that answer and our row one transaction. So the job is
marked before the call and settled after it:

1. `sending` is committed, with the time until which the worker may be at it.
2. The provider is called.
3. Taken, refused and surely not taken are committed. Surely not taken goes back to `waiting`, and is tried again.

A worker that finds `sending` waits until that time; after it the other worker has died, or its answer was lost. Nobody knows then
whether the message is on its way, and it is not sent again: a code that comes twice, or a message that bills twice, costs more than
one that a person asks for again.
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
# Longer than any call to a provider may take.
_LONGEST_CALL = timedelta(seconds=60)
_GIVEN_UP_AFTER = timedelta(hours=24)
_SHORTEST_SECONDS, _LONGEST_SECONDS = 15.0, 900.0
_IN_DOUBT_TEXT = "The connection ended while the message was handed over. It may have been sent, and is not sent again."


class ProviderAwayTooLong(ServiceError):
    """The provider has been away for a day."""


def state_of(job: Job) -> str:
    """Return how far the sending of a job is."""
    return str(job.summary.get(_STATE, WAITING))


def send_once(job: Job, send: Callable[[], None], *, lasts_until: datetime | None = None) -> Pause | None:
    """Call `send` if no worker has done so for this job; return how long to wait where it has to be tried again.

    `send` raises `ProviderAway` and `InDoubt`; a `ServiceError` ends the job. After `lasts_until` nothing is sent any more.
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
    """Return how long a job waits for its next try: longer each time. After a day raise `ProviderAwayTooLong`.

    What ends soon is tried often: a code of five minutes is of no use after fifteen.
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
    """Mark the job as `sending` and return None; a pause while another worker is at it, True where nothing is left to do."""
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
        _write(job, row, DROPPED, "Not sent: its time was over before the provider could take it.")
        return True
    row.summary = {**row.summary, _UNTIL: (now + _LONGEST_CALL).isoformat()}
    # The sweep must not send another worker while this one waits for the provider.
    row.lease_until = now + _LONGEST_CALL
    _write(job, row, SENDING, "")
    return None


@unit_of_work
def _settle(job: Job, state: str, details: str = "") -> None:
    _write(job, Job.objects.of(job.tenant_id).select_for_update(no_key=True).get(pk=job.pk), state, details)


def _write(job: Job, row: Job, state: str, details: str) -> None:
    """Store the state in the row, and in the copy that the caller goes on with. What is settled needs its secrets no more."""
    row.summary = {**row.summary, _STATE: state}
    row.status_details = details[:500]
    if state in SETTLED:
        row.parameters = {name: value for name, value in row.parameters.items() if name != SEALED}
    row.save(update_fields=["summary", "status_details", "parameters", "lease_until", "updated_at"])
    job.summary, job.status_details, job.parameters, job.lease_until = row.summary, row.status_details, row.parameters, row.lease_until


# Where a job keeps what only its message may say.
SEALED = "sealed"
