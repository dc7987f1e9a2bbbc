"""Runs a synchronization. The step of the job (`begin`) selects the phase. The effect of the job (`go_on`) sends the requests of this phase
while no transaction is open.

    users      examines every user of this service, in the order of the keys, and writes each user whose account differs
    accounts   reads every account on the server, page by page, and stores accounts with our key but without a user
    deletions  deletes the stored accounts if the plan requests this; more accounts than the limit require an approval

After the last phase, the job enables the stream if the plan requests this. Progress is saved after every few users. After a crash, only the
users since the last save are processed again, which is harmless.
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

# Seconds between checks while the job waits for an administrator. An answer continues the job immediately.
_WAIT_SECONDS = 600.0
_PHASES = {"users": examine_users, "accounts": note_accounts, "deletions": delete_accounts}


class WaitedTooLong(ServiceError):
    """The synchronization ended because it waited too long for an administrator. Changes already made on the server remain."""


def begin(job: Job) -> bool | Pause:
    """Decide whether the synchronization pauses, continues or ends; the caller has locked the row of the job.

    1. If the job waits for an administrator, pause. Raises `WaitedTooLong` after `HOLD_MAX_SECONDS`.
    2. If the server's `Retry-After` has not passed, or another process works on the job, pause.
    3. If the phase is not finished, request the effect that works on it.
    4. After the last phase, enable the stream at the cursor if the plan requests this, and end the job.
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
    """Work on the job's phase for some seconds. A failure that affects all users stops the job until an administrator resumes it."""
    if not holders.is_ours(job):
        # A command and a worker may work on the same job. Writing in parallel could create users twice.
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
        told.append(f"Accounts with our externalId but without a user, not deleted: {extra:,}.")
    job.status_details = " ".join(told)[:500]
    return False


for _type in (Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION):
    step_of(_type)(begin)
    effect_of(_type)(go_on)
