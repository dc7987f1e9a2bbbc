"""`manage.py tenants export`: writes a stopped tenant to an archive, so that it can move to another installation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.models import Tenant
from identity.moving.archive import read_or_make_key
from identity.moving.exporting import counted_rows, export_tenant
from identity.moving.showing import shown_rows

HELP = """Write a stopped tenant to an archive: all its rows, its event log, and its secrets.

The archive is a directory. It is encrypted with the journey key: anyone with the archive and the key can read the password hashes and the
secrets of the tenant. The command creates the key if FILE does not exist. Send the key and the archive to the target over two different
channels.

If the command is killed, run it again: it continues. If an administrator of the platform changes the tenant during the export, the
command refuses to complete the archive.

  manage.py tenants export acme --to /var/lib/identity/moves/acme --journey-key /var/lib/identity/moves/acme.key

Undo: delete the directory and the key, and run manage.py tenants start acme.
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tenant", help="Id of the tenant, which must be stopped.")
    parser.add_argument("--to", required=True, type=Path, metavar="DIRECTORY", help="New directory for the archive.")
    parser.add_argument("--journey-key", required=True, type=Path, metavar="FILE", help="File with the journey key; created if missing.")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    tenant_id, directory = options["tenant"], options["to"]
    if not Tenant.objects.filter(pk=tenant_id).exists():
        raise CommandError(f"There is no tenant {tenant_id}.")
    key, is_new = read_or_make_key(options["journey_key"], archive=directory)
    if is_new:
        stdout.write(f"The journey key is new: {options['journey_key']}")
    started = time.monotonic()
    with shown_rows(stdout, "Exporting", counted_rows(tenant_id)) as progress:
        done = export_tenant(tenant_id=tenant_id, directory=directory, key=key, progress=progress)
    stdout.write(f"{tenant_id}: {done.rows:,} rows in {done.parts:,} parts, {time.monotonic() - started:.1f} s. The archive is complete.")
    stdout.write(f"Next, at the target: manage.py tenants import {directory} --journey-key {options['journey_key']}")
