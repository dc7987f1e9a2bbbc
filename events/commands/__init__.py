"""The subcommands of `manage.py events`. Each subcommand is one module.

The name of a module in this package is the name of its subcommand. Each module offers

- `HELP`: the first line is a summary of one sentence; the other lines explain the subcommand and give examples;
- `add_arguments(parser)`;
- `handle(options, stdout, stderr) -> int`, which returns the exit status.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast

from django.core.management.base import CommandParser, OutputWrapper


class Subcommand(Protocol):
    """The interface of a module in this package."""

    HELP: str

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments of the subcommand."""

    def handle(self, options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
        """Run the subcommand and return the exit status. Raises `CommandError` for errors that the user of the command can correct."""


def subcommands() -> dict[str, Subcommand]:
    """Return every subcommand by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: cast("Subcommand", importlib.import_module(f"{__name__}.{name}")) for name in names}
