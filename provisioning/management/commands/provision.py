"""`manage.py provision <subcommand>`: provisions users to SCIM servers manually. Subcommands are in `provisioning.commands`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from provisioning.commands import FORMER_NAMES, subcommands


class Command(BaseCommand):
    help = "Provision users to SCIM servers. For help on a subcommand: manage.py provision <subcommand> --help."

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(dest="subcommand", required=True, metavar="subcommand")
        for name, module in subcommands().items():
            summary, _, rest = module.HELP.strip().partition("\n")
            subparser = parsers.add_parser(
                name,
                aliases=[former for former, now in FORMER_NAMES.items() if now == name],
                help=summary,
                description=f"{summary}\n{rest}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            module.add_arguments(subparser)

    def handle(self, *args: Any, **options: Any) -> None:
        name = FORMER_NAMES.get(options["subcommand"], options["subcommand"])
        status = subcommands()[name].handle(options, self.stdout, self.stderr)
        if status:
            sys.exit(status)
