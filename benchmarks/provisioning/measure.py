"""The scenarios of provisioning, one after the other: rate, one user, recovery, memory, lists."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django

django.setup()

from benchmarks.deliveries import bare_loop, free_port, wait_for  # noqa: E402
from benchmarks.provisioning.document import shown, write_document  # noqa: E402
from benchmarks.provisioning.lists import measure_lists  # noqa: E402
from benchmarks.provisioning.processes import processor_seconds, resident_kib, working  # noqa: E402
from benchmarks.provisioning.queues import queue  # noqa: E402

_SCENARIOS = ("rate", "one_user", "recovery", "memory", "lists")
_WARM_UP = 2000
_STREAMS = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use small numbers, only to check that the benchmark runs")
    parser.add_argument("--document", action="store_true", help="write the figures into docs/performance.md")
    parser.add_argument("--scenarios", nargs="+", choices=_SCENARIOS, default=_SCENARIOS, help="scenarios to run; all by default")
    options = parser.parse_args()
    if options.document and tuple(options.scenarios) != _SCENARIOS:
        parser.error("--document needs all scenarios: docs/performance.md shows the figures of one complete run")
    share = 20 if options.quick else 1
    results: dict[str, Any] = {"cores": os.cpu_count()}
    with answering() as base:
        scenarios: dict[str, Callable[[], Any]] = {
            "rate": lambda: rate(base, rounds=5 if share == 1 else 2, people=300 // min(share, 3)),
            "one_user": lambda: one_user(base, 1000 // share),
            "recovery": lambda: recovery(base, 5000 // share),
            "memory": lambda: memory(base, 2500 // share),
            "lists": lambda: measure_lists((10_000 // share, 100_000 // share, 1_000_000 // share)),
        }
        for name in options.scenarios:
            started = time.monotonic()
            results[name] = scenarios[name]()
            print(name, json.dumps(results[name]), f"after {time.monotonic() - started:.0f} s", flush=True)
    results["load"] = os.getloadavg()[1]
    print(shown(results))
    if options.document:
        write_document(results)
    return 0


def rate(base: str, *, rounds: int, people: int) -> list[dict[str, float]]:
    """Measure one worker process and `bare_loop` (the same requests without the service) alternately, so that other load affects both."""
    measured = []
    with working(1) as worker:
        queue(base, 10).run()  # Warm up the worker, so that its start-up is not measured.
        for _ in range(rounds):
            waiting = queue(base, people)
            bare = [_bare(base, people)]
            used = processor_seconds(worker)
            ours = waiting.waiting / waiting.run()
            cost = 1000 * (processor_seconds(worker) - used) / waiting.waiting
            bare.append(_bare(base, people))
            rate_of_loop, cost_of_loop = (sum(figures) / 2 for figures in zip(*bare, strict=True))
            measured.append({"ours": ours, "bare": rate_of_loop, "ratio": ours / rate_of_loop, "ours_ms": cost, "bare_ms": cost_of_loop})
    return measured


def _bare(base: str, people: int) -> tuple[float, float]:
    """Run `bare_loop`; return deliveries per second and the milliseconds of processor time per delivery."""
    used = time.process_time()
    per_second = bare_loop(base, people)
    return per_second, 1000 * (time.process_time() - used) / (2 * people)


def one_user(base: str, events: int) -> dict[str, float]:
    """Measure the deliveries of events that all belong to one user, and so must be delivered one after another."""
    with working(2):
        waiting = queue(base, 1, events - 1)
        seconds = waiting.run()
    return {"events": events, "per_second": events / seconds, "out_of_order": waiting.out_of_order()}


def recovery(base: str, people: int) -> dict[str, float]:
    """Measure how long one process per core takes to deliver the backlog of an outage."""
    waiting = queue(base, people)
    with working(os.cpu_count() or 2):
        seconds = waiting.run()
    return {"waiting": waiting.waiting, "seconds": seconds, "out_of_order": waiting.out_of_order()}


def memory(base: str, people: int) -> dict[str, float]:
    """Measure the memory growth of one worker process per delivery: the slope of a line fitted to the samples."""
    # Each recorded event becomes one delivery per stream.
    waiting = queue(base, people, streams=_STREAMS)
    samples: list[tuple[int, float]] = []

    def observe(done: int) -> None:
        if done:
            samples.append((done, resident_kib(worker)))

    with working(1) as worker:
        waiting.run(observe)
    steady = [sample for sample in samples if sample[0] >= min(_WARM_UP, waiting.waiting // 4)]
    return {"deliveries": waiting.waiting, "mib": steady[-1][1] / 1024, "bytes_per_delivery": slope(steady) * 1024}


def slope(samples: list[tuple[int, float]]) -> float:
    """Return the slope of the least squares line."""
    middle = sum(x for x, _ in samples) / len(samples)
    level = sum(y for _, y in samples) / len(samples)
    spread = sum((x - middle) ** 2 for x, _ in samples)
    return sum((x - middle) * (y - level) for x, y in samples) / spread if spread else 0.0


@contextmanager
def answering() -> Iterator[str]:
    """Run the SCIM server that answers immediately."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.scim_answers", str(port)])
    try:
        wait_for(base)
        yield base
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
