"""The subcommands of `manage.py events`, one module each.

A module is found by being here: its name is the name of the subcommand. It offers

- `HELP`: the first line says in one sentence what it does; what follows teaches, with examples;
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
    """What a module of this package offers."""

    HELP: str

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments of the subcommand."""

    def handle(self, options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
        """Do it and return the exit status. Raises `CommandError` for what the caller can correct."""


def subcommands() -> dict[str, Subcommand]:
    """Return every subcommand by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: cast("Subcommand", importlib.import_module(f"{__name__}.{name}")) for name in names}
