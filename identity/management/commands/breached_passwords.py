"""`manage.py breached_passwords`: build, refresh and describe the list of breached passwords (docs/adr/0117)."""

from __future__ import annotations

import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from foundation.outbound.session import outbound_session
from identity.breaches.current_list import list_status
from identity.breaches.list_building import BuildRefused, ListBuilder, Plan, building, present_list
from identity.breaches.list_file import RANGES, Facts, ListUnreadable
from identity.breaches.list_sources import RangeInterface, SourceRefused, Taking, ranges_of_directory, ranges_of_file

_TOLD_EVERY_SECONDS = 5.0
_ABOUT = """\
The list of passwords that were found in breaches of other services.

It is one file at BREACHED_PASSWORDS_FILE, shared by all web processes and tenants of this host. The file contains truncated digests, 6
bytes for each password, and is searched on the disk: processes do not load it. Copy it to each host that runs web processes. Without a list
no password is refused. Tenants decide what happens to a password in the list. They set this under Sign-in settings in the admin, or with
PATCH /attack-protection/breached-password-detection.

  manage.py breached_passwords import pwnedpasswords.txt   one sorted file with lines DIGEST:COUNT (SHA-1)
  manage.py breached_passwords import ranges/              a directory with 00000.txt to FFFFF.txt, lines SUFFIX:COUNT
  manage.py breached_passwords refresh                     fetch each range from BREACHED_PASSWORDS_URL
  manage.py breached_passwords status                      whether there is a list, how many passwords it has, and how old it is

A complete new list replaces the old one in one step, and running processes use it within a second. If a run is stopped, run the
command again to resume it. A list of 900 million passwords takes 5.4 GB, and another 5.4 GB while it is built. For a smaller list,
leave out rare passwords: --at-least 10.
"""


class Command(BaseCommand):
    help = _ABOUT

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **options)

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="act", required=True, metavar="import, refresh or status")
        imports = commands.add_parser("import", help="Build the list from a downloaded file or directory.")
        imports.add_argument("source", type=Path, help="A sorted file of lines DIGEST:COUNT, or a directory of range files.")
        refresh = commands.add_parser("refresh", help="Build the list from a range interface; ranges that have not changed are kept.")
        refresh.add_argument("--parallel", type=int, default=16, metavar="N", help="Parallel requests, 1 to 64. Default: 16.")
        for maker in (imports, refresh):
            maker.add_argument("--at-least", type=int, default=1, metavar="N", help="Leave out passwords with a count below N. Default: 1.")
            maker.add_argument("--restart", action="store_true", help="Discard the progress of an earlier run, and start again.")
            maker.add_argument("--allow-missing", action="store_true", help="Accept a source in which whole ranges are missing.")
            maker.add_argument("--accept-smaller", action="store_true", help="Accept a list that is much smaller than the existing list.")
        commands.add_parser("status", help="Show whether there is a list, and how old it is.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "status":
            self.stdout.write(_in_words())
            return
        if not settings.BREACHED_PASSWORDS_FILE:
            raise CommandError("Set BREACHED_PASSWORDS_FILE to the path of the list first.")
        if options["at_least"] < 1:
            raise CommandError("--at-least must be 1 or more.")
        with _failures_in_words():
            facts = self._imported(options) if options["act"] == "import" else self._refreshed(options)
        self.stdout.write(f"The list is ready: {facts.count:,} passwords.")

    def _imported(self, options: dict[str, Any]) -> Facts:
        source: Path = options["source"].resolve()
        if not source.exists():
            raise CommandError(f"There is no {source}.")
        ranges_of = ranges_of_directory if source.is_dir() else ranges_of_file
        with building(self._plan(str(source), options), restarts=options["restart"]) as builder:
            builder.add_all(ranges_of(source, _taking(options), start=builder.done), tell=self._teller())
            return builder.finish(accepts_smaller=options["accept_smaller"])

    def _refreshed(self, options: dict[str, Any]) -> Facts:
        if not 1 <= options["parallel"] <= 64:
            raise CommandError("--parallel must be 1 to 64.")
        base = settings.BREACHED_PASSWORDS_URL.rstrip("/") + "/"
        plan = self._plan(base, options)
        with building(plan, restarts=options["restart"]) as builder:
            present = present_list(plan.path)
            is_same = present is not None and (present.facts.source, present.facts.at_least) == (plan.source, plan.at_least)
            interface = RangeInterface(outbound_session(), base, options["parallel"], present if is_same else None)
            builder.add_all(interface.ranges(_taking(options), start=builder.done), tell=self._teller())
            return builder.finish(accepts_smaller=options["accept_smaller"])

    def _plan(self, source: str, options: dict[str, Any]) -> Plan:
        return Plan(Path(settings.BREACHED_PASSWORDS_FILE), source, options["at_least"])

    def _teller(self) -> Any:
        """Return a function that prints the progress every few seconds."""
        last = time.monotonic()

        def tell(builder: ListBuilder) -> None:
            nonlocal last
            if builder.done == RANGES or time.monotonic() - last >= _TOLD_EVERY_SECONDS:
                last = time.monotonic()
                self.stdout.write(f"{builder.done / RANGES:6.1%}  {builder.count:,} passwords")
                self.stdout.flush()

        return tell


def _taking(options: dict[str, Any]) -> Taking:
    return Taking(options["at_least"], options["allow_missing"])


def _in_words() -> str:
    status = list_status()
    if status.facts is None:
        return status.in_words
    return f"{status.in_words} Source: {status.facts.source}. Seen at least {status.facts.at_least} times."


@contextmanager
def _failures_in_words() -> Iterator[None]:
    try:
        yield
    except (BuildRefused, SourceRefused, ListUnreadable) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"The list cannot be written or the source cannot be read: {error}") from error
