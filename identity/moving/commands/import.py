"""`manage.py tenants import`: reads an archive, as the third step of a move."""  # noqa: N999  (a module has the name of its subcommand)

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from identity.moving.archive import open_archive, read_key
from identity.moving.facts import refusals
from identity.moving.importing import import_tenant
from identity.moving.showing import shown_rows

HELP = """Read an archive of a tenant into this installation.

The command first checks, without writing anything: the digests of the archive, the migrations, the settings that must be equal, the keys
of the source in SESSION_KEYS, DIGEST_KEYS and CURSOR_KEYS, and that the id, the hosts and the e-mail addresses of the staff are free.
ENCRYPTION_KEYS needs no key of the source: the command encrypts the secrets again with the newest key of this installation.

Then it inserts the rows. The tenant is `arriving`: its hosts answer 503, and no worker works for it. At the end the command compares
counts and digests of all tables with the source, and decrypts every secret once. If the command is killed, run it again: it continues.

  manage.py tenants import /var/lib/identity/moves/acme --journey-key /var/lib/identity/moves/acme.key --check    only the checks
  manage.py tenants import /var/lib/identity/moves/acme --journey-key /var/lib/identity/moves/acme.key

Undo: manage.py tenants remove acme.
"""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("archive", type=Path, metavar="DIRECTORY", help="Directory of the archive.")
    parser.add_argument("--journey-key", required=True, type=Path, metavar="FILE", help="File with the journey key.")
    parser.add_argument("--check", action="store_true", help="Only check whether the import is possible.")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
    archive = open_archive(options["archive"], key=read_key(options["journey_key"]))
    if reasons := refusals(archive):
        raise CommandError("\n".join(("The import is refused; nothing was written.", *reasons)))
    if options["check"]:
        parts = sum(1 for _ in archive.check_parts())
        stdout.write(f"The {parts:,} parts of the archive are intact, and {archive.tenant_id} can be imported here.")
        return
    started, rows = time.monotonic(), sum(part.rows for part in archive.parts if not part.is_late)
    with shown_rows(stdout, "Importing", rows) as progress:
        import_tenant(archive, progress=progress)
    stdout.write(f"{archive.tenant_id}: {rows:,} rows, {time.monotonic() - started:.1f} s. Counts and digests match those of the source.")
    stdout.write(f"Next, at the source: manage.py tenants hand-over {options['archive']} --journey-key {options['journey_key']}")
