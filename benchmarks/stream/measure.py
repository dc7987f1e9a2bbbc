"""One run: every scenario on every server, one after another, and the figures. Started by `python -m benchmarks.stream`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import django

django.setup()

from benchmarks.stream import peers  # noqa: E402  (models may be imported only after the line above)
from benchmarks.stream.document import write_document  # noqa: E402
from benchmarks.stream.latency import latency, peer_latency  # noqa: E402
from benchmarks.stream.machine import described  # noqa: E402
from benchmarks.stream.options import read_options, sizes_of  # noqa: E402
from benchmarks.stream.ours import ours  # noqa: E402
from benchmarks.stream.programs import Programs, build  # noqa: E402
from benchmarks.stream.replay import replay  # noqa: E402
from benchmarks.stream.scenarios import Figures, NotDelivered, Sizes, burst, connects, fan_out, idle  # noqa: E402
from benchmarks.stream.subjects import Shape, Starter, Subject  # noqa: E402
from benchmarks.stream.world import World  # noqa: E402
from config.launcher.processes import NotReady  # noqa: E402
from events.log.numbering import numberer  # noqa: E402

_PER_TENANT = 8
_LATENCY_STREAMS = (1, 8)
# The web server of production is measured in all scenarios. Other web servers are measured only in scenarios in which results can differ.
DEFAULT = "ours, uvicorn"
# Seconds for which the streams of `Run.shapes` stay idle: long enough for a stable memory size, too short for heartbeats. In the
# measurement with the most streams (`many_streams`), the streams stay idle until each stream has had a heartbeat.
_BRIEF_SECONDS = 2.0


class Run:
    """The servers of this run, and the figures so far."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.sizes: Sizes = sizes_of(options)
        self.programs: Programs = build(directory)
        self.world = World()
        self.results: list[Figures] = []
        self.left_out: list[str] = []
        self._directory = directory

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """The two shapes: one channel with all streams, and many channels with eight streams each."""
        return Shape(1, self.sizes.streams), Shape(self.sizes.streams // _PER_TENANT, _PER_TENANT)

    def ours(self) -> dict[str, Starter]:
        """Return our own service on each server."""
        wanted = [("uvicorn", 1), ("uvicorn", 2), ("daphne", 1)]
        starters = {}
        for server, processes in wanted:
            name = f"ours, {server}" + (f" x {processes}" if processes > 1 else "")
            starters[name] = ours(name, server, self.world, self._directory, processes=processes)
        return self._wanted(starters)

    def others(self) -> dict[str, Starter]:
        """Return the installed peers; report each missing peer once."""
        template, frame = self.world.template(), self.world.frame()
        makers: dict[str, Callable[[], Starter]] = {
            "bare sender": lambda: peers.bare_sender(self.programs, frame),
            "bare application, uvicorn": lambda: peers.bare_application(template, self._directory),
            "nchan": lambda: peers.nchan(template, self._directory),
            "django-eventstream": lambda: peers.eventstream(template, self._directory),
        }
        found = {}
        for name, make in self._wanted(makers).items():
            try:
                found[name] = make()
            except peers.NotInstalled as error:
                self.leave_out(f"{name} is not measured: {error}")
        return found

    def measure(self, scenario: str, name: str, work: Callable[[], Figures]) -> None:
        """Run one scenario on one server; a failure omits only this figure."""
        started = time.monotonic()
        try:
            figures = work()
        except (NotDelivered, NotReady, OSError) as error:
            self.leave_out(f"{scenario}, {name}: {error}")
            return
        self.results.append({"scenario": scenario, "subject": name, **figures})
        shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items() if key != "rounds"}
        print(f"{scenario:9s} {name:20s} {time.monotonic() - started:5.1f} s  {shown}", flush=True)

    def leave_out(self, sentence: str) -> None:
        """Report once what is not measured, and why."""
        if sentence not in self.left_out:
            self.left_out.append(sentence)
            print(f"left out: {sentence}", file=sys.stderr, flush=True)

    def _wanted(self, found: dict[str, Any]) -> dict[str, Any]:
        texts = self.options.subjects
        return {name: made for name, made in found.items() if not texts or any(text in name for text in texts)}


def main(directory: Path, options: argparse.Namespace) -> None:
    """Measure the requested scenarios, server by server, and write the figures."""
    started = time.monotonic()
    run = Run(options, directory)
    numberer().start()
    run.world.members(run.shapes[1].channels)
    others, own = run.others(), run.ours()
    for name, start in {**others, **own}.items():
        with _started(run, name, start) as subject:
            if subject is not None:
                _measure_running(run, name, subject)
    if "replay" in options.scenarios:
        _measure_replay(run, own)
    if "idle" in options.scenarios:
        _measure_idle(run, {**others, **own})
    figures = {
        "machine": described(run.programs),
        "seconds": round(time.monotonic() - started),
        "sizes": {name: value for name, value in vars(run.sizes).items() if name != "numbers"},
        "left_out": run.left_out,
        "results": run.results,
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.document:
        write_document(figures)
    print(f"measured in {figures['seconds']} s on {platform.machine()}", flush=True)


@contextmanager
def _started(run: Run, name: str, start: Starter) -> Iterator[Subject | None]:
    if not {"latency", "fanout", "burst", "connects"} & set(run.options.scenarios):
        yield None
        return
    with ExitStack() as stack:
        try:
            subject = stack.enter_context(start())
        except NotReady as error:
            run.leave_out(f"{name} did not start: {error}")
            yield None
            return
        yield subject


def _measure_running(run: Run, name: str, subject: Subject) -> None:
    is_ours, is_bare = name.startswith("ours"), name == "bare sender"
    # Our service on another web server, or with two processes, is measured in only one round, so that a run takes about ten minutes.
    programs, sizes = run.programs, replace(run.sizes, rounds=1) if is_ours and name != DEFAULT else run.sizes
    one, many = run.shapes
    asked = set(run.options.scenarios)
    if "latency" in asked and name == DEFAULT:
        for streams in _LATENCY_STREAMS:
            run.measure("latency", name, partial(latency, subject, programs, streams, sizes, run.world))
    elif "latency" in asked and not is_ours and not is_bare:
        run.measure("latency", name, partial(peer_latency, subject, programs, _LATENCY_STREAMS[-1], sizes))
    if "fanout" in asked:
        # The bare sender has no channels.
        for shape in (one,) if is_bare else (one, many):
            run.measure("fanout", name, partial(fan_out, subject, programs, shape, sizes))
    if "burst" in asked and name != "django-eventstream":
        # Without storage, django-eventstream drops messages for a reader that is more than ten events behind.
        run.measure("burst", name, partial(burst, subject, programs, one, sizes))
    if "connects" in asked:
        run.measure("connects", name, partial(connects, subject, programs, many, sizes))


def _measure_replay(run: Run, own: dict[str, Starter]) -> None:
    member = run.world.history(run.sizes.history)
    for name, start in own.items():
        if "x 2" not in name:
            sizes = run.sizes if name == DEFAULT else replace(run.sizes, rounds=1)
            with start() as subject:
                run.measure("replay", name, partial(replay, subject, run.programs, run.world, member, sizes))


def _measure_idle(run: Run, starters: dict[str, Starter]) -> None:
    many = Shape(run.sizes.many_streams // _PER_TENANT, _PER_TENANT)
    for name, start in starters.items():
        if "x 2" not in name:
            brief = replace(run.sizes, heartbeat_seconds=_BRIEF_SECONDS)
            run.measure("idle", name, partial(idle, start, run.programs, run.shapes[1], brief))
        if name in {"nchan", DEFAULT}:
            run.measure("idle", name, partial(idle, start, run.programs, many, run.sizes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), read_options(sys.argv[2:]))
