"""One run: each dimension grows from its smallest to its largest size, and at each size the measurements of this dimension run."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import django

django.setup()

from benchmarks.provisioning.measure import answering  # noqa: E402  (models may be imported only after the line above)
from benchmarks.provisioning.processes import working  # noqa: E402
from benchmarks.scale.document import shown, write_document  # noqa: E402
from benchmarks.scale.growth import grow_delivery_streams, grow_log, settle  # noqa: E402
from benchmarks.scale.options import read_options, sizes_of  # noqa: E402
from benchmarks.scale.probes import Figures, Probes  # noqa: E402
from benchmarks.stream.machine import described  # noqa: E402
from benchmarks.stream.programs import build  # noqa: E402
from benchmarks.stream.usage import load_average  # noqa: E402
from benchmarks.stream.world import World  # noqa: E402
from events.log.numbering import numberer  # noqa: E402

_STREAMS = 100


class Run:
    """The measurements, the sizes, and the figures so far."""

    def __init__(self, probes: Probes, sizes: dict[str, tuple[int, ...]], *, is_quick: bool, notes: Path | None = None) -> None:
        self._probes = probes
        self._sizes = sizes
        self._people = 20 if is_quick else 150
        self._notes = notes
        self.results: list[dict[str, Any]] = []

    def measure(self) -> None:
        """Measure every requested dimension."""
        grown: dict[str, Callable[[tuple[int, ...]], None]] = {
            "web processes": self._web_processes,
            "tenants": self._tenants,
            "streams": self._streams,
            "log rows": self._log_rows,
        }
        for dimension, sizes in self._sizes.items():
            grown[dimension](sizes)

    def _web_processes(self, sizes: tuple[int, ...]) -> None:
        probes = self._probes
        for size in sizes:
            self._note("web processes", size, [partial(probes.frame, _STREAMS, processes=size), partial(probes.token, processes=size)])

    def _streams(self, sizes: tuple[int, ...]) -> None:
        made = 0
        for size in sizes:
            grow_delivery_streams(self._probes.world, start=made, count=size)
            made = size
            self._note("streams", size, self._all(streams=size))

    def _tenants(self, sizes: tuple[int, ...]) -> None:
        for size in sizes:
            self._probes.world.members(size)
            settle()
            self._note("tenants", size, self._all())

    def _log_rows(self, sizes: tuple[int, ...]) -> None:
        made = 0
        for size in sizes:
            grow_log(self._probes.member, start=made, rows=size, most=sizes[-1])
            made = size
            self._note("log rows", size, [*self._all(), self._probes.replay])

    def _all(self, streams: int = _STREAMS) -> list[Callable[[], Figures]]:
        probes = self._probes
        return [
            probes.event,
            partial(probes.frame, streams),
            partial(probes.delivery, self._people),
            probes.token,
            probes.pages,
            probes.periodic,
        ]

    def _note(self, dimension: str, size: int, probes: Sequence[Callable[[], Figures]]) -> None:
        started = time.monotonic()
        figures: Figures = {}
        for probe in probes:
            figures |= probe()
        self.results.append({"dimension": dimension, "size": size, "load": load_average(), **figures})
        if self._notes is not None:
            # An interrupted run keeps the figures that it has measured.
            self._notes.write_text(json.dumps(self.results, indent=2))
        told = ", ".join(f"{name} {value:,.2f}" for name, value in figures.items())
        print(f"{size:,} {dimension} ({time.monotonic() - started:.0f} s): {told}", flush=True)


def main(directory: Path, options: argparse.Namespace) -> None:
    """Measure and print the tables. If `options.json` is set, write the figures to this path.

    If `options.document` is set, update docs/performance.md.
    """
    programs, world = build(directory), World()
    numberer().start()
    world.members(1)
    with answering() as base, working(1):
        probes = Probes(world, programs, directory, base)
        # Warm up the worker, so that its start is not measured.
        probes.delivery(10)
        run = Run(probes, sizes_of(options), is_quick=options.quick, notes=options.json)
        run.measure()
    figures = {"machine": described(programs), "cores": os.cpu_count(), "results": run.results}
    print(shown(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    if options.document:
        write_document(figures)


if __name__ == "__main__":
    main(Path(sys.argv[1]), read_options(sys.argv[2:]))
