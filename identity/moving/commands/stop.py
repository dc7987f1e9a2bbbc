"""`manage.py tenants stop`: stops a tenant, as the first step of a move."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.moving import stopping
from identity.moving.confirming import add_yes, confirm

HELP = """Stop a tenant, so that it can be exported.

Effects:
  - All its hosts answer 503 with Retry-After on every interface. Its event streams end with their last cursor.
  - Workers do no work for it: no delivery, no job, no mail, no pruning, no rotation of keys.
  - Its staff cannot log in.
Nothing is lost: deliveries, jobs and mails continue after `open` at the other installation, or after `start` here.

The command waits until no work for the tenant runs any more. Workers must run meanwhile, because they give the last events
their positions. `manage.py tenants start` undoes the stop.

  manage.py tenants stop acme
  manage.py tenants stop acme --yes --wait 300    in a runbook
"""
_LOOK_SECONDS = 0.5


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tenant", help="Id of the tenant.")
    parser.add_argument("--wait", type=int, default=120, metavar="SECONDS", help="Time to wait for running work (default: 120).")
    add_yes(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    tenant_id = options["tenant"]
    confirm(tenant_id, f"All hosts of {tenant_id} will answer 503, and its deliveries and jobs will pause.", options, stdout)
    stopped = stopping.stop(tenant_id)
    deadline = time.monotonic() + options["wait"]
    while running := stopped.still_runs():
        if time.monotonic() > deadline:
            raise CommandError(f"{tenant_id} is stopped, but work still runs: {' '.join(running)} Run the command again.")
        time.sleep(_LOOK_SECONDS)
    stdout.write(
        f"{tenant_id} is stopped, and no work for it runs. Next: manage.py tenants export {tenant_id} --to DIRECTORY --journey-key FILE"
    )
