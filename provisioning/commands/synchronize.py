"""`manage.py provision synchronize`: the first synchronization of a stream's users with its SCIM server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.models import EventStream
from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import cancel_job
from provisioning.commands.following import DONE, FAILED, WAITS, follow, job_named, stream_named
from provisioning.synchronization import service
from provisioning.synchronization.plan import USER_NAME, Plan

_ACTOR = "the command line"

HELP = f"""Synchronize existing users with the SCIM server of a stream, before the stream is enabled.

A stream delivers only changes made while it is enabled; existing users need one synchronization. Each user of the stream's connections is
looked up by externalId. If the search finds an account whose values differ from those of the user, the account is updated. If the search
finds no account, the account that --match identifies is linked: it gets the externalId and the attributes of the user. Without such an
account, a new account is created. Accounts of other users, and ambiguous accounts, are never changed; the report lists them.

Without --yes the command starts with a dry run and asks for confirmation. You can repeat the command: a second run writes only
accounts that differ. The synchronization is a job that survives Ctrl+C and crashes; --resume continues it.

Examples
  manage.py provision synchronize est_... --dry-run                    report the changes; write nothing
  manage.py provision synchronize est_... --enable                     synchronize all users, then enable the stream from
                                                                       before the first user was read: no change is missed
  manage.py provision synchronize est_... --match none                 do not link accounts without externalId
  manage.py provision synchronize est_... --match 'employeeNumber=app_metadata.employee_number'
                                                                       link by an attribute that you trust
  manage.py provision synchronize est_... --delete-missing --deletion-limit 5%
                                                                       also delete accounts of deleted users
  manage.py provision synchronize est_... --report users.jsonl         write one JSON line per user

Exit status
  {DONE}    every user was processed
  {FAILED}    some users failed, or the job failed, or you answered no
  {WAITS}    the job waits for you: too many deletions, or the server refuses requests; the output shows how to continue
  130, 143  stopped by Ctrl+C, by SIGTERM"""


def add_arguments(parser: CommandParser) -> None:
    add_common_arguments(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--dry-run", action="store_true", help="report the changes and write nothing")
    how.add_argument(
        "--match",
        default=USER_NAME,
        metavar="ATTR",
        help="rule that links an account without externalId: userName or emails.value (only while the e-mail address is verified), "
        "none, or <SCIM path>=<JMESPath of the user> (default: userName)",
    )
    how.add_argument("--enable", action="store_true", help="enable the stream at the end, from the position before the first user was read")
    how.add_argument("--delete-missing", action="store_true", help="delete accounts with our externalId whose user was deleted")
    how.add_argument("--deletion-limit", default="10", metavar="N|N%", help="more deletions than this wait for --confirm (default: 10)")
    how.add_argument("--yes", action="store_true", help="skip the dry run and the confirmation")
    job = parser.add_argument_group("existing jobs").add_mutually_exclusive_group()
    job.add_argument("--resume", metavar="JOB", help="continue a stopped job")
    job.add_argument("--confirm", metavar="JOB", help="approve the deletions of a job that waits for approval, and continue the job")
    job.add_argument("--decline", metavar="JOB", help="finish a job that waits for approval, without its deletions")
    job.add_argument("--cancel", metavar="JOB", help="cancel a job; changes already made remain")


def add_common_arguments(parser: CommandParser) -> None:
    """Declare the common arguments of synchronize and compare."""
    parser.add_argument("stream", help="the id of the event stream, est_...")
    parser.add_argument("--rate", type=int, default=20, metavar="N", help="maximum number of users per second (default: 20)")
    parser.add_argument("--values", action="store_true", help="show the differing values in the report; these values are personal data")
    parser.add_argument("--report", metavar="FILE", help="write the report to this file as JSON lines")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    stream = stream_named(options["stream"])
    again = f"manage.py provision synchronize {stream.pk}"
    try:
        if options["cancel"]:
            cancel_job(tenant_id=stream.tenant_id, job_id=job_named(stream, options["cancel"]).pk, actor=_ACTOR)
            stdout.write("Canceled. Changes on the server remain.")
            return DONE
        job = _answered(stream, options)
        if job is None:
            if not (options["yes"] or options["dry_run"]) and not _agreed(stream, options, stdout, stderr, again):
                stderr.write("Nothing was written.")
                return FAILED
            job = start(stream, _plan(options))
    except ServiceError as refusal:
        raise CommandError(str(refusal)) from refusal
    return follow(job, options, stdout, stderr, how_to_resume=again)


def start(stream: EventStream, plan: Plan) -> Job:
    """Start a job with the command line as its actor."""
    return service.start(tenant_id=stream.tenant_id, stream_id=stream.pk, plan=plan, actor=_ACTOR)


def _answered(stream: EventStream, options: Mapping[str, Any]) -> Job | None:
    """Give the answer of --resume, --confirm or --decline to its job, and return the job. Return None if no such option was given."""
    answers: dict[str, Callable[[Job], Job]] = {
        "resume": lambda job: (
            service.resume(tenant_id=job.tenant_id, job_id=job.pk, actor=_ACTOR) if job.parameters.get("waits_for") == "resume" else job
        ),
        "confirm": lambda job: service.confirm_deletions(tenant_id=job.tenant_id, job_id=job.pk, actor=_ACTOR),
        "decline": lambda job: service.decline_deletions(tenant_id=job.tenant_id, job_id=job.pk, actor=_ACTOR),
    }
    name = next((name for name in answers if options[name]), None)
    return answers[name](job_named(stream, options[name])) if name else None


def _agreed(stream: EventStream, options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper, again: str) -> bool:
    """Show a dry run and ask for confirmation."""
    dry = start(stream, _plan({**options, "dry_run": True, "enable": False}))
    if follow(dry, {**options, "report": None}, stdout, stderr, how_to_resume=again) not in (DONE, FAILED):
        return False
    stdout.flush()
    return input("Write these changes? [y/N] ").strip().lower() in ("y", "yes")


def _plan(options: Mapping[str, Any]) -> Plan:
    return Plan(
        is_dry_run=options["dry_run"],
        match=options["match"],
        rate=options["rate"],
        enables_stream=options["enable"],
        deletes_missing=options["delete_missing"],
        deletion_limit=options["deletion_limit"],
        shows_values=options["values"],
    )
