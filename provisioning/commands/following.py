"""Runs a synchronization at a terminal. Shows the progress, and shows the result when the synchronization ends, waits or is stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from events.client.stopping import Stopped, Stopping
from events.models import EventStream
from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import run_job
from provisioning.models import SynchronizationRow
from provisioning.synchronization import service, work  # noqa: F401  (`work` registers what the jobs do)
from provisioning.synchronization.state import outcomes_of

_LOOK_SECONDS = 1.0
_SHOWN = 10
# Outcomes that need attention.
_TELLING = ("skipped", "ambiguous", "failed", "missing", "different", "extra")
DONE, FAILED, WAITS = 0, 1, 3


def stream_named(name: str) -> EventStream:
    """Return the stream with this id, of any tenant; raise `CommandError` if there is none."""
    stream = EventStream.all_tenants.filter(pk=name).first()
    if stream is None:
        raise CommandError(f"There is no event stream {name}. The admin and GET /api/v2/event-streams show the ids; they begin with est_.")
    return stream


def job_named(stream: EventStream, job_id: str) -> Job:
    """Return the synchronization of the stream with this job id; raise `CommandError` if there is none."""
    try:
        job = service.found(tenant_id=stream.tenant_id, job_id=job_id)
    except ServiceError as refusal:
        raise CommandError(f"{job_id}: {refusal}") from refusal
    if job.parameters["stream_id"] != stream.pk:
        raise CommandError(f"{job_id} is a job of another stream, {job.parameters['stream_id']}.")
    return job


def follow(job: Job, options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper, *, how_to_resume: str) -> int:
    """Work on the job until the job ends or waits; return the exit status. Ctrl+C ends the work after the current users, and prints how to
    continue."""
    try:
        _work(job, Console(file=stderr, no_color=options["no_color"]), is_shown=stderr.isatty())  # type: ignore[arg-type]  # Django's wrapper is a text stream
    except Stopped as stopped:
        job.refresh_from_db()
        stderr.write(
            f"Stopped at {job.rows_done:,} of {job.summary.get('total', 0):,} users; changes on the server remain. Running workers "
            f"continue the job.\nTo continue here:  {how_to_resume} --resume {job.pk}\nTo cancel it:      {how_to_resume} --cancel {job.pk}"
        )
        return stopped.exit_status
    tell(job, stdout)
    if options["report"]:
        count = _write_report(job, Path(options["report"]))
        stdout.write(f"{options['report']}: {count:,} JSON lines; the first line contains the counts")
    return _status(job, stderr, how_to_resume)


def tell(job: Job, stdout: OutputWrapper) -> None:
    """Print the number of users by outcome, and the first users that need attention."""
    outcomes = outcomes_of(job)
    is_dry = job.parameters["plan"]["is_dry_run"]
    counts = ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.items()) or "no users"
    stdout.write(f"{job.pk}{' (dry run: nothing was written)' if is_dry else ''}: {counts}")
    for outcome in (name for name in _TELLING if outcomes.get(name)):
        rows = SynchronizationRow.objects.filter(job=job, outcome=outcome).order_by("pk")[:_SHOWN]
        for row in rows:
            paths = ", ".join(difference["path"] for difference in row.differences)
            stdout.write(f"  {outcome:<10} {row.user_id}  {row.reason or paths}")
        if outcomes[outcome] > _SHOWN:
            stdout.write(f"  {outcome:<10} ... and {outcomes[outcome] - _SHOWN:,} more; --report FILE lists up to a thousand")
    if job.status_details and job.status == Job.Status.COMPLETED:
        stdout.write(job.status_details)


def _work(job: Job, console: Console, *, is_shown: bool) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    with Stopping() as stopping, Progress(*columns, console=console, disable=not is_shown) as progress:
        task = progress.add_task(_description(job), total=job.summary.get("total"), pace="")
        while not _rests(job):
            stopping.check()
            is_waiting = run_job(job.pk, chunks=1)
            job.refresh_from_db()
            progress.update(task, description=_description(job), completed=job.rows_done, total=job.summary.get("total"), pace=_pace(job))
            if is_waiting and not _rests(job):
                with stopping.interruptible:
                    time.sleep(_LOOK_SECONDS)


def _rests(job: Job) -> bool:
    return job.is_finished or bool(job.parameters.get("waits_for"))


def _description(job: Job) -> str:
    return {"users": "Users here", "accounts": "Accounts there", "deletions": "Deletions"}.get(job.parameters["phase"], "Ending")


def _pace(job: Job) -> str:
    left, outcomes = job.seconds_left(timezone.now()), outcomes_of(job)
    counts = " ".join(f"{outcome} {number:,}" for outcome, number in outcomes.items())
    if job.started_at is None or left is None:
        return counts
    rate = job.rows_done / max((timezone.now() - job.started_at).total_seconds(), 0.001)
    return f"{rate:,.0f} users/s, {timedelta(seconds=left)} left  {counts}"


def _write_report(job: Job, path: Path) -> int:
    with path.open("wb") as file:
        count = 0
        for line in service.report_lines(job):
            file.write(line)
            count += 1
    return count


def _status(job: Job, stderr: OutputWrapper, how_to_resume: str) -> int:
    if job.status == Job.Status.FAILED:
        raise CommandError(f"{job.pk}: {job.status_details}")
    waits_for = job.parameters.get("waits_for")
    if not waits_for:
        return FAILED if job.summary.get("outcomes", {}).get("failed") else DONE
    stderr.write(job.status_details)
    if waits_for == "confirmation":
        stderr.write(
            f"To delete these accounts:  {how_to_resume} --confirm {job.pk}\nTo keep these accounts:    {how_to_resume} --decline {job.pk}"
        )
    else:
        stderr.write(f"After fixing the cause:  {how_to_resume} --resume {job.pk}")
    return WAITS
