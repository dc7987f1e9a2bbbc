"""The command-line options of a run, and the sizes of each dimension."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

# The sizes of each dimension, smallest first. The dimensions grow one after another, and rows that one dimension added stay in the
# database.
SIZES: dict[str, tuple[int, ...]] = {
    "web processes": (1, 2, 3, 4),
    # Tenants grow before streams: each tenant has ten streams, so more streams also make more tenants.
    "tenants": (1, 10, 100, 1000, 10_000),
    "streams": (10, 100, 1000, 10_000),
    "log rows": (10_000, 100_000, 1_000_000, 10_000_000),
}
_QUICK: dict[str, tuple[int, ...]] = {
    "web processes": (1, 2),
    "tenants": (1, 10),
    "streams": (10, 100),
    "log rows": (1000, 10_000),
}


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; exit with a message for an unknown option."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("--dimensions", nargs="+", choices=list(SIZES), default=list(SIZES), metavar="NAME", help=", ".join(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that the benchmark works, measures nothing")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--document", action="store_true", help="write docs/performance.md and its plot; for a run of all dimensions")
    options = parser.parse_args(arguments)
    if options.document and (options.quick or options.dimensions != list(SIZES)):
        parser.error("--document needs a complete run: the page shows all dimensions")
    return options


def sizes_of(options: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """Return the sizes of each requested dimension, in the order of a run.

    The order matters, because the database never becomes smaller.
    """
    sizes = _QUICK if options.quick else SIZES
    return {name: sizes[name] for name in SIZES if name in options.dimensions}
