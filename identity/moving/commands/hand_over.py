"""`manage.py tenants hand-over`: gives up an exported tenant at the source of a move."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser, OutputWrapper

from identity.moving.archive import open_archive, read_key
from identity.moving.confirming import add_yes, confirm
from identity.moving.leaving import hand_over

HELP = """Give up an exported tenant here, and print the receipt that opens it at the target.

Run it when the import at the target is complete. Until `open` at the target, the tenant runs at neither installation,
and its hosts answer 503 here. Change the proxy or the DNS records of its hosts now. The rows stay here until you run manage.py
tenants remove.

  manage.py tenants hand-over /var/lib/identity/moves/acme --journey-key /var/lib/identity/moves/acme.key

Undo, before `open` at the target: first run manage.py tenants remove acme at the target, then run here:

  manage.py tenants start acme --after-hand-over
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("archive", type=Path, metavar="DIRECTORY", help="Directory of the archive.")
    parser.add_argument("--journey-key", required=True, type=Path, metavar="FILE", help="File with the journey key.")
    add_yes(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    archive = open_archive(options["archive"], key=read_key(options["journey_key"]))
    confirm(archive.tenant_id, f"{archive.tenant_id} will not run here any more.", options, stdout)
    receipt = hand_over(archive)
    stdout.write(f"{archive.tenant_id} is handed over. Next, at the target: manage.py tenants open {archive.tenant_id} --receipt {receipt}")
