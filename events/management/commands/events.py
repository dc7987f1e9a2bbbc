"""`manage.py events <subcommand>`: commands of operators for the event log. The subcommands are modules of `events.commands`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from events.commands import subcommands


class Command(BaseCommand):
    # Skips the system checks, so that a command that reads a remote stream starts without loading every model and route. The service
    # runs the checks when it starts.
    requires_system_checks = ()
    help = "Work with the event log. Each subcommand explains itself: manage.py events <subcommand> --help."

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(dest="subcommand", required=True, metavar="subcommand")
        for name, module in subcommands().items():
            summary, _, rest = module.HELP.strip().partition("\n")
            subparser = parsers.add_parser(
                name,
                help=summary,
                description=f"{summary}\n{rest}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            module.add_arguments(subparser)

    def handle(self, *args: Any, **options: Any) -> None:
        status = subcommands()[options["subcommand"]].handle(options, self.stdout, self.stderr)
        if status:
            sys.exit(status)
