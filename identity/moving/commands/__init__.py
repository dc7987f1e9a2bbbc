"""The subcommands of `manage.py tenants`, one module each.

The name of a module here, with hyphens, is the name of its subcommand. Each module offers

- `HELP`: the first line is a one-sentence summary; the rest explains, with examples;
- `add_arguments(parser)`;
- `handle(options, stdout, stderr)`, which raises `CommandError` for errors that the caller can correct.
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

    def handle(self, options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> None:
        """Run the subcommand. Raises `CommandError` and `ServiceError` for errors that the caller can correct."""


def subcommands() -> dict[str, Subcommand]:
    """Return every subcommand by its name."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): cast("Subcommand", importlib.import_module(f"{__name__}.{name}")) for name in sorted(modules)}
