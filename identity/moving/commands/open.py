"""`manage.py tenants open`: the last step of a move, after which the tenant runs at the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser, OutputWrapper

from identity.moving.confirming import add_yes, confirm
from identity.moving.importing import open_tenant

HELP = """Let an imported tenant run here, with the status that it had at the source.

Its hosts answer, its deliveries and jobs continue, and clients resume with their cursors and tokens. The receipt comes from
`manage.py tenants hand-over` at the source. It proves that the tenant does not run there, so nothing is delivered twice.

  manage.py tenants open acme --receipt 0f3a9-...

This command cannot be undone without loss: later changes are stored only at this installation.
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tenant", help="Id of the tenant.")
    parser.add_argument("--receipt", required=True, help="The receipt that hand-over printed at the source.")
    add_yes(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    tenant_id = options["tenant"]
    confirm(tenant_id, f"{tenant_id} will run here: its hosts answer, and waiting deliveries are sent.", options, stdout)
    stdout.write(f"{tenant_id} is {open_tenant(tenant_id=tenant_id, receipt=options['receipt'])}.")
