"""The scenarios of provisioning, one after the other: rate, one user, recovery, memory, lists."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

django.setup()

from benchmarks.deliveries import bare_loop, free_port, wait_for  # noqa: E402
from benchmarks.provisioning.document import shown, write_document  # noqa: E402
from benchmarks.provisioning.lists import measure_lists  # noqa: E402
from benchmarks.provisioning.queues import queue  # noqa: E402

_WARM_UP = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, which show that it works")
    parser.add_argument("--document", action="store_true", help="write the figures into docs/performance.md")
    options = parser.parse_args()
    share = 20 if options.quick else 1
    results: dict[str, Any] = {"cores": os.cpu_count()}
    with answering() as base:
        scenarios: dict[str, Callable[[], Any]] = {
            "rate": lambda: rate(base, rounds=5 if share == 1 else 2, people=300 // min(share, 3)),
            "one_user": lambda: one_user(base, 1000 // share),
            "recovery": lambda: recovery(base, 5000 // share),
            "memory": lambda: memory(base, 10_000 // share),
            "lists": lambda: measure_lists((10_000 // share, 1_000_000 // share)),
        }
        for name, scenario in scenarios.items():
            results[name] = scenario()
            print(name, json.dumps(results[name]), flush=True)
    results["load"] = os.getloadavg()[1]
    print(shown(results))
    if options.document:
        write_document(results)
    return 0


def rate(base: str, *, rounds: int, people: int) -> list[dict[str, float]]:
    """One worker process and the bare loop in turn, several times: other work on the machine meets both."""
    measured = []
    with working(1):
        for _ in range(rounds):
            waiting = queue(base, people)
            before = bare_loop(base, people)
            ours = waiting.waiting / waiting.run()
            bare = (before + bare_loop(base, people)) / 2
            measured.append({"ours": ours, "bare": bare, "ratio": ours / bare})
    return measured


def one_user(base: str, events: int) -> dict[str, float]:
    """All events of one user, which can only be delivered one after the other."""
    with working(2):
        waiting = queue(base, 1, events - 1)
        seconds = waiting.run()
    return {"events": events, "per_second": events / seconds, "out_of_order": waiting.out_of_order()}


def recovery(base: str, people: int) -> dict[str, float]:
    """What an outage has left waiting, from the resumption to the last outcome, with as many processes as cores."""
    waiting = queue(base, people)
    with working(os.cpu_count() or 2):
        seconds = waiting.run()
    return {"waiting": waiting.waiting, "seconds": seconds, "out_of_order": waiting.out_of_order()}


def memory(base: str, people: int) -> dict[str, float]:
    """The resident memory of one worker process over its deliveries, as the slope of a straight line through the samples."""
    waiting = queue(base, people)
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


def resident_kib(worker: int) -> float:
    """Return the memory of the process that runs the tasks."""
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    status = Path(f"/proc/{children[0]}/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@contextmanager
def answering() -> Iterator[str]:
    """Run the SCIM server that answers at once."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.scim_answers", str(port)])
    try:
        wait_for(base)
        yield base
    finally:
        server.kill()
        server.wait()


@contextmanager
def working(processes: int) -> Iterator[int]:
    """Run a worker with so many processes; yield the id of its parent. Its lines go where nobody reads them, as a file would."""
    command: list[Any] = [sys.executable, "-m", "celery", "-A", "config", "worker", "--concurrency", str(processes)]
    with Path(os.devnull).open("wb") as nowhere:
        worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle"], stdout=nowhere, stderr=nowhere)
        try:
            yield worker.pid
        finally:
            worker.terminate()
            worker.wait(60)


if __name__ == "__main__":
    sys.exit(main())
