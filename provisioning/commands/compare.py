"""`manage.py provision compare`: compares the users with the accounts on the SCIM server of a stream. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.services.failures import ServiceError
from provisioning.commands.following import DONE, FAILED, follow, job_named, stream_named
from provisioning.commands.synchronize import add_common_arguments, start
from provisioning.synchronization.plan import NO_MATCH, Plan
from provisioning.synchronization.state import outcomes_of

HELP = f"""Compare the users of this service with the accounts on the SCIM server of a stream, and report differences.

The command reports users without an account, accounts without a user, and each attribute whose value on the server differs from the value
that an update would write. Values are masked unless --values is given. The comparison writes nothing on either side, so it may run while
the stream is enabled. A user that changes during the comparison may be reported, although the stream will then deliver the change.

  manage.py provision compare est_...
  manage.py provision compare est_... --report drift.jsonl --values

To repair the differences:  manage.py provision synchronize est_...

Exit status
  {DONE}    no differences
  {FAILED}    differences were found, or some users could not be compared"""
_DRIFT = ("missing", "different", "extra", "ambiguous", "failed")


def add_arguments(parser: CommandParser) -> None:
    add_common_arguments(parser)
    parser.add_argument("--resume", metavar="JOB", help="continue a stopped comparison")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:

    stream = stream_named(options["stream"])
    try:
        job = (
            job_named(stream, options["resume"])
            if options["resume"]
            else start(stream, Plan(match=NO_MATCH, rate=options["rate"], shows_values=options["values"], only_reports=True))
        )
    except ServiceError as refusal:
        raise CommandError(str(refusal)) from refusal
    status = follow(job, options, stdout, stderr, how_to_resume=f"manage.py provision compare {stream.pk}")
    if status == DONE and any(outcomes_of(job).get(name) for name in _DRIFT):
        return FAILED
    return status
