"""Scenarios for any server: one event at a time, a burst, connects, idle streams. Each function returns the measured numbers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stream.programs import Count, Programs, Reader
from benchmarks.stream.subjects import Shape, Starter, Subject
from benchmarks.stream.usage import Meter, load_average, memory

Figures = dict[str, Any]

_WARM_UP = Shape(1, 8)
_SETTLE_SECONDS = 1.0
_REST_SECONDS = 1.0
# Seconds between events of different tenants, equal for every server. Otherwise a server without durable events would publish faster
# and run with warmer caches.
_PACE_SECONDS = 0.01


class NotDelivered(Exception):
    """A server did not open every stream or did not deliver every frame in time."""


@dataclass
class Numbers:
    """Assigns numbers to events; no number is used twice."""

    next: int = 1

    def take(self, count: int = 1) -> int:
        """Reserve `count` numbers and return the first."""
        first, self.next = self.next, self.next + count
        return first


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run. Figures are medians of repeated rounds; a round ends early when its time is over."""

    rounds: int = 3
    streams: int = 1000
    many_streams: int = 10_000
    events: int = 100
    round_seconds: float = 3.0
    burst: int = 100
    heartbeat_seconds: float = 16.0
    history: int = 100_000
    latency_samples: int = 150
    numbers: Numbers = field(default_factory=Numbers)


QUICK = Sizes(
    rounds=1,
    streams=200,
    many_streams=400,
    events=20,
    round_seconds=3.0,
    burst=100,
    heartbeat_seconds=3.0,
    history=5000,
    latency_samples=15,
)


def fan_out(subject: Subject, programs: Programs, shape: Shape, sizes: Sizes) -> Figures:
    """Publish one event at a time, to each channel in turn. Return the processor time per delivered frame.

    The processor time of the idle server is measured first and subtracted. An idle server uses processor time, too. Without
    the subtraction, this time would count as the cost of frames, most of all when publishing is slow.
    """
    with open_streams(subject, programs, shape) as reader:
        resting = Meter(subject.pids())
        time.sleep(_REST_SECONDS)
        idle_share = resting.taken()[0] / resting.taken()[1]
        rounds = [_one_at_a_time(subject, reader, shape, sizes, idle_share) for _ in range(sizes.rounds)]
    return _median(rounds) | {"shape": str(shape), "idle_percent": round(idle_share * 100, 2)}


def _one_at_a_time(subject: Subject, reader: Reader, shape: Shape, sizes: Sizes, idle_share: float) -> Figures:
    before, meter = reader.reset(), Meter(subject.pids())
    until = time.monotonic() + sizes.round_seconds
    waits: list[float] = []
    expected = 0
    for event in range(sizes.events * (shape.channels if shape.channels > 1 else 1)):
        if shape.channels > 1:
            time.sleep(_PACE_SECONDS)
        published = subject.publish(event % shape.channels, sizes.numbers.take())
        expected += shape.each
        told = _delivered(reader, expected)
        waits.append(told.last - published)
        if time.monotonic() > until:
            break
    processor, wall = meter.taken()
    return {
        "us_per_frame": (processor - idle_share * wall) / told.frames * 1e6,
        "us_per_frame_with_idle": processor / told.frames * 1e6,
        "reader_us_per_frame": (told.processor - before.processor) / told.frames * 1e6,
        "ms_to_last_stream": statistics.median(waits) * 1000,
        "frames": told.frames,
        "bytes_per_frame": told.bytes / told.frames,
        "load_average": load_average(),
    }


def burst(subject: Subject, programs: Programs, shape: Shape, sizes: Sizes) -> Figures:
    """Publish many events at once to one channel; return delivered frames per second, from the commit to the last byte."""
    with open_streams(subject, programs, shape) as reader:
        rounds = []
        for _ in range(sizes.rounds):
            before, meter = reader.reset(), Meter(subject.pids())
            published = subject.publish(0, sizes.numbers.take(sizes.burst), sizes.burst)
            told = _delivered(reader, shape.each * sizes.burst)
            rounds.append(
                {
                    "frames_per_second": told.frames / (told.last - published),
                    "us_per_frame": meter.taken()[0] / told.frames * 1e6,
                    "reader_us_per_frame": (told.processor - before.processor) / told.frames * 1e6,
                    "load_average": load_average(),
                }
            )
            time.sleep(_REST_SECONDS)
    return _median(rounds) | {"shape": str(shape), "events": sizes.burst}


def connects(subject: Subject, programs: Programs, shape: Shape, sizes: Sizes) -> Figures:
    """Open all streams as fast as the server accepts them, 64 at a time; return streams per second."""
    rounds = []
    for _ in range(sizes.rounds):
        requests = subject.requests(shape, own_tokens=True)
        with programs.reader(subject.address) as reader:
            meter = Meter(subject.pids())
            told = _opened(reader, requests)
            rounds.append(
                {
                    "connects_per_second": told.streams / (told.last - told.started),
                    "us_per_connect": meter.taken()[0] / told.streams * 1e6,
                    "load_average": load_average(),
                }
            )
        time.sleep(_REST_SECONDS)
    return _median(rounds) | {"shape": str(shape)}


def idle(start: Starter, programs: Programs, shape: Shape, sizes: Sizes) -> Figures:
    """Measure the memory per open stream of a new server, and the server's processor time while no event is published."""
    with start() as subject:
        # Open a few streams first, because the first streams allocate memory that all later streams share.
        with open_streams(subject, programs, _WARM_UP) as reader:
            subject.publish(0, sizes.numbers.take())
            _delivered(reader, _WARM_UP.each)
        time.sleep(_SETTLE_SECONDS)
        before = memory(subject.pids())
        with open_streams(subject, programs, shape, seconds=180.0):
            meter = Meter(subject.pids())
            time.sleep(sizes.heartbeat_seconds)
            processor, wall = meter.taken()
            after = memory(subject.pids())
    return {
        "shape": str(shape),
        "streams": shape.streams,
        "kib_per_stream": (after.proportional - before.proportional) / shape.streams / 1024,
        "resident_kib_per_stream": (after.resident - before.resident) / shape.streams / 1024,
        "mib_before": before.proportional / 2**20,
        "idle_percent": processor / wall * 100,
        "load_average": load_average(),
    }


@contextmanager
def open_streams(subject: Subject, programs: Programs, shape: Shape, *, seconds: float = 60.0) -> Iterator[Reader]:
    """Open the streams that `shape` describes and close them at the end. Raises `NotDelivered` if the server refuses a stream."""
    with programs.reader(subject.address) as reader:
        _opened(reader, subject.requests(shape), seconds=seconds)
        # Some servers respond before they subscribe.
        time.sleep(_SETTLE_SECONDS)
        yield reader
    time.sleep(_SETTLE_SECONDS)


def _opened(reader: Reader, requests: Sequence[bytes], *, seconds: float = 60.0) -> Count:
    told = reader.open(requests, seconds=seconds)
    if told.streams != len(requests):
        raise NotDelivered(f"{told.streams} of {len(requests)} streams were opened")
    return told


def _delivered(reader: Reader, frames: int) -> Count:
    told = reader.wait(frames)
    if told.frames < frames:
        raise NotDelivered(f"{told.frames} of {frames} frames were delivered, {told.ended} streams ended")
    return told


def _median(rounds: Sequence[Figures]) -> Figures:
    middle = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
    return {**middle, "rounds": list(rounds)}
