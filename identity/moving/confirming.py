"""Asks the operator before a step that stops or starts a tenant, moves the tenant to the target, or deletes its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper


def add_yes(parser: CommandParser) -> None:
    parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")


def confirm(tenant_id: str, effect: str, options: Mapping[str, Any], stdout: OutputWrapper) -> None:
    """Show the effect and ask the operator to type the id of the tenant, unless `--yes` was given.

    Raises `CommandError` for other input.
    """
    stdout.write(effect)
    if options["yes"]:
        return
    try:
        typed = input(f"Type {tenant_id} to continue: ")
    except EOFError:
        typed = ""
    if typed.strip() != tenant_id:
        raise CommandError("Nothing was changed.")
