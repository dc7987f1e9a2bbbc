"""The subcommands of `manage.py provision`, one module each. The modules have the same interface as the modules of `events.commands`."""

from __future__ import annotations

from collections.abc import Mapping

from events.commands import Subcommand
from provisioning.commands import compare, synchronize

# Former names that scripts may still use.
FORMER_NAMES = {"backfill": "synchronize", "reconcile": "compare"}
_SUBCOMMANDS: dict[str, Subcommand] = {"synchronize": synchronize, "compare": compare}


def subcommands() -> Mapping[str, Subcommand]:
    """Return every subcommand by its name."""
    return _SUBCOMMANDS
