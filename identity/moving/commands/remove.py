"""`manage.py tenants remove`: undoes an import, or deletes what a move leaves at the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.models import Tenant
from identity.moving.confirming import add_yes, confirm
from identity.moving.exporting import counted_rows
from identity.moving.leaving import remove_tenant
from identity.moving.showing import shown_rows

HELP = """Delete the rows of a tenant whose import was not opened here, or of a tenant that has moved away.

At the target, before `open`: the command deletes the whole import. Use the command for an import that failed or that you no longer need.
At the source, after `hand-over`: the command deletes the rows of the moved tenant. First check that the tenant runs at the target.
Entries of the audit log stay at the source for AUDIT_RETENTION_DAYS. After the command, the id is free, so the tenant can come back.

If the command is killed, run it again: it continues. The command records no events and sends nothing to destinations.

  manage.py tenants remove acme
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tenant", help="Id of the tenant.")
    add_yes(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    tenant_id = options["tenant"]
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise CommandError(f"There is no tenant {tenant_id}.")
    rows = counted_rows(tenant_id)
    confirm(tenant_id, f"{rows:,} rows of {tenant_id}, which is {tenant.status}, will be deleted here.", options, stdout)
    with shown_rows(stdout, "Removing", rows) as progress:
        remove_tenant(tenant_id=tenant_id, progress=lambda count: progress("rows", count))
    stdout.write(f"{tenant_id} is removed.")
