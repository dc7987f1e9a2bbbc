"""A synchronization at work: the job's step decides what is next, its effect talks to the server with no transaction open.

    users      every user here, by key: examined, and written where it differs
    accounts   every account there, page by page: those that carry our key and have no user here are noted
    deletions  on request those are deleted; too many wait for a person
    then the stream is enabled, when that was asked for

What was done is written after every few users, so a crash repeats those few, and repeating one is harmless.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from events.models import EventStream
from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import Pause, effect_of, step_of
from provisioning.runs.failures import ActionError
from provisioning.synchronization import enabling, holders, phases
from provisioning.synchronization.accounts import delete_accounts, note_accounts
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.run import Run, Stopped
from provisioning.synchronization.state import Overtaken, account_counts, save
from provisioning.synchronization.users import examine_users

# A person is waited for; the sweep looks in from time to time, and whoever answers sends the job at once.
_WAIT_SECONDS = 600.0
_PHASES = {"users": examine_users, "accounts": note_accounts, "deletions": delete_accounts}


class WaitedTooLong(ServiceError):
    """The server did not answer in time: the synchronization was given up. What it has written stays."""


def begin(job: Job) -> bool | Pause:
    """Decide what a synchronization whose row is locked does next.

    1. What waits for a person waits, at most as long as a held stream may.
    2. What the server asked to wait for waits, and so does whoever finds another process at work.
    3. A phase has more to do: its effect is asked for.
    4. After the last phase the stream is enabled at the cursor, and the job is done.
    """
    if job.parameters.get("waits_for"):
        since = datetime.fromisoformat(job.parameters["waits_since"])
        if timezone.now() - since > timedelta(seconds=settings.HOLD_MAX_SECONDS):
            raise WaitedTooLong
        return Pause(_WAIT_SECONDS)
    if (rest := max(_seconds_until(job, "pause_until"), holders.seconds_taken(job))) > 0:
        return Pause(rest)
    if job.parameters["phase"] in _PHASES:
        holders.take(job)
        job.has_effect_due = True
        return True
    return _finish(job)


def go_on(job: Job) -> None:
    """Do some seconds of the job's phase. A failure that would meet every user stops the job until somebody resumes it."""
    if not holders.is_ours(job):
        # A command line and a worker may be sent to one job; two that write the same users would create some of them twice.
        return
    stream = EventStream.objects.of(job.tenant_id).filter(pk=job.parameters["stream_id"]).first()
    if stream is None:
        raise ServiceError("The event stream was deleted.")
    try:
        run = Run(job, stream)
        _PHASES[job.parameters["phase"]](run)
    except Overtaken:
        return
    except (Stopped, ActionError) as reason:
        with contextlib.suppress(Overtaken):
            phases.wait_for_person(job, phases.RESUME, f"Stopped: {reason}")
    finally:
        with contextlib.suppress(Overtaken):
            save(job, held_until=None)


def _seconds_until(job: Job, name: str) -> float:
    until = job.parameters.get(name)
    return (datetime.fromisoformat(until) - timezone.now()).total_seconds() if until else 0.0


def _finish(job: Job) -> bool | Pause:
    plan = Plan.of_document(job.parameters["plan"])
    told: list[str] = list(job.parameters.get("notes", ()))
    if plan.enables_stream:
        outcome = enabling.enable_at_cursor(job)
        if isinstance(outcome, Pause):
            return outcome
        told.append(outcome)
    extra = account_counts(job).get("extra", 0)
    if extra and not plan.deletes_missing:
        told.append(f"Accounts with a key of ours and no user here, left alone: {extra:,}.")
    job.status_details = " ".join(told)[:500]
    return False


for _type in (Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION):
    step_of(_type)(begin)
    effect_of(_type)(go_on)
