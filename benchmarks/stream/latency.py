"""Measures the time from the commit of an event to its arrival at each subscriber, and the lower bound of this time.

When our own service is measured, the web process also serves a management client meanwhile.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.stream.floor import Floor, floor
from benchmarks.stream.programs import Programs, Reader
from benchmarks.stream.scenarios import Figures, NotDelivered, Sizes, open_streams
from benchmarks.stream.subjects import MARK, Shape, Subject
from benchmarks.stream.usage import load_average
from benchmarks.stream.world import World

_REQUESTS_PER_SECOND = 50.0
_PAUSE_SECONDS = (0.03, 0.06)
_LAST_SECONDS = 0.5


def latency(subject: Subject, programs: Programs, streams: int, sizes: Sizes, world: World) -> Figures:
    """Measure our own latency. For each sample, save one user, then insert one row without this service, as the lower bound."""
    with ExitStack() as stack:
        reader = stack.enter_context(open_streams(subject, programs, Shape(1, streams)))
        bare = stack.enter_context(floor())
        managing = stack.enter_context(_managed(subject, world))
        arrivals, published = _samples(subject, reader, sizes, bare)
        return _of_streams(arrivals, published, streams) | _of_floor(bare.seconds(), arrivals, published) | _of_management(managing)


def peer_latency(subject: Subject, programs: Programs, streams: int, sizes: Sizes) -> Figures:
    """Measure the latency of another server, which gets each event in a publish request and stores nothing durably. The latency is the
    time from the publish request to each subscriber."""
    with open_streams(subject, programs, Shape(1, streams)) as reader:
        return _of_streams(*_samples(subject, reader, sizes, None), streams)


def _samples(subject: Subject, reader: Reader, sizes: Sizes, bare: Floor | None) -> tuple[dict[int, list[float]], dict[int, float]]:
    reader.mark(MARK)
    published: dict[int, float] = {}
    for _ in range(sizes.latency_samples):
        number = sizes.numbers.take()
        published[number] = subject.publish(0, number)
        time.sleep(random.uniform(*_PAUSE_SECONDS))
        if bare is not None:
            bare.take(number)
            time.sleep(random.uniform(*_PAUSE_SECONDS))
    time.sleep(_LAST_SECONDS)
    arrivals: dict[int, list[float]] = {number: [] for number in published}
    for number, _, moment in reader.arrivals():
        arrivals[number].append(moment)
    return arrivals, published


def _of_streams(arrivals: dict[int, list[float]], published: dict[int, float], streams: int) -> Figures:
    if any(len(moments) != streams for moments in arrivals.values()):
        raise NotDelivered("an event did not reach every stream")
    taken = [moment - published[number] for number, moments in arrivals.items() for moment in moments]
    return {"streams": streams, "samples": len(published), **_quantiles("", taken), "load_average": load_average()}


def _of_floor(seconds: Sequence[float], arrivals: dict[int, list[float]], published: dict[int, float]) -> Figures:
    ours = statistics.median(moment - published[number] for number, moments in arrivals.items() for moment in moments)
    return {**_quantiles("floor_", seconds), "ratio_to_floor": ours / statistics.median(seconds)}


def _of_management(managing: subprocess.Popen[str]) -> Figures:
    told: dict[str, Any] = json.loads(managing.communicate("")[0])
    if told["statuses"] != [200]:
        raise NotDelivered(f"management requests were answered with {told['statuses']}")
    return {**_quantiles("management_", told["seconds"]), "management_requests": len(told["seconds"])}


def _quantiles(prefix: str, seconds: Sequence[float]) -> Figures:
    ordered = sorted(seconds)
    return {
        f"{prefix}p50_ms": statistics.median(ordered) * 1000,
        f"{prefix}p99_ms": ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000,
    }


@contextmanager
def _managed(subject: Subject, world: World) -> Iterator[subprocess.Popen[str]]:
    member = world.members(1)[0]
    given = [str(subject.address[1]), str(_REQUESTS_PER_SECOND), member.host, member.token(), world.managed_user(member)]
    command = [sys.executable, "-m", "benchmarks.stream.management", *given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
