"""The command-line options of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.stream.scenarios import QUICK, Sizes

SCENARIOS = ("latency", "fanout", "burst", "connects", "replay", "idle")


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; exit with a message for an unknown option."""
    parser = argparse.ArgumentParser(prog="benchmarks.stream", description=__doc__)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--subjects", nargs="+", default=[], metavar="TEXT", help="only servers whose name contains one of these texts")
    parser.add_argument("--quick", action="store_true", help="small sizes and one round, only to check that the benchmark runs")
    parser.add_argument("--rounds", type=int, help="rounds per figure; the figure is their median")
    parser.add_argument("--streams", type=int, help="number of streams in the scenarios fanout, burst, connects and idle; a multiple of 8")
    parser.add_argument("--history", type=int, help="number of events in the scenario replay")
    parser.add_argument("--json", type=Path, help="a file for the figures, with every round")
    parser.add_argument("--document", action="store_true", help="write docs/performance.md and its plot")
    options = parser.parse_args(arguments)
    if options.streams is not None and (options.streams < 8 or options.streams % 8):
        parser.error("--streams must be a multiple of 8")
    return options


def sizes_of(options: argparse.Namespace) -> Sizes:
    """Return the sizes of the run."""
    given = {name: value for name in ("rounds", "streams", "history") if (value := getattr(options, name)) is not None}
    return replace(QUICK if options.quick else Sizes(), **given)
