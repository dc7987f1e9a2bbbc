"""`manage.py tenants <subcommand>`: moves tenants to another installation. The subcommands are modules of `identity.moving.commands`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from identity.moving.commands import subcommands
from identity.services.failures import ServiceError


class Command(BaseCommand):
    help = (
        "Move a tenant to another installation, with everything that belongs to it. The order is: stop, export, import, hand-over, open. "
        "Each subcommand explains itself: manage.py tenants <subcommand> --help."
    )

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
        try:
            subcommands()[options["subcommand"]].handle(options, self.stdout, self.stderr)
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"The archive or the journey key cannot be read or written: {error}. Run the command again.") from error
