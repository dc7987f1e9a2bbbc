"""Runs streams for half an hour with one fault per minute. Checks every guarantee each minute, and the growth of resources at the end.

One web process is never killed. Every second, this program samples the memory, descriptors and threads of that process, the connections
to PostgreSQL and the keys in Redis. A fitted line shows which of these values grow. Run with `make soak`, MINUTES=30 by default.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

# The settings of Django read this variable when they are loaded. Its value is never used, because this program starts its own servers.
os.environ.setdefault("DATABASE_URL", "postgresql:///unused")

from config.launcher.processes import Process
from tests.conformance.reader import Subscriber
from tests.conformance.web_process import WebProcess
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.world import Seeded, World

SAMPLE_SECONDS = 1.0
ROUND_SECONDS = 60.0
# The first part of the run, in which caches fill and pools open. The fitted lines leave out its samples.
WARM_UP_SHARE = 0.25
# Allowed growth per hour. Because the samples are noisy, a resource exceeds its limit only if the lower bound of its slope exceeds the
# limit.
LIMITS_PER_HOUR = {"rss_bytes": 1024 * 1024, "descriptors": 5, "threads": 2, "backends": 5, "redis_keys": 5}
_STEADY, _CHURNING = 8, 8


@dataclass(frozen=True)
class Trend:
    """A straight line through the samples of one resource: its slope per hour, and the bounds of the 95 % interval of the slope."""

    per_hour: float
    low: float
    high: float
    first: float
    last: float
    limit: float

    @property
    def is_growth(self) -> bool:
        return self.low > self.limit


def trend(times: Sequence[float], values: Sequence[float], limit: float) -> Trend:
    """Fit a line by least squares. The interval is computed from the residuals, with each minute as one observation."""
    slope, intercept = statistics.linear_regression(times, values)
    residuals = [value - (intercept + slope * moment) for moment, value in zip(times, values, strict=True)]
    middle = statistics.fmean(times)
    spread = sum((moment - middle) ** 2 for moment in times)
    # Neighboring samples are correlated: each minute, with its fault, counts as one observation.
    independent = max(len(times) * SAMPLE_SECONDS / ROUND_SECONDS, 3.0)
    error = math.sqrt(sum(residual**2 for residual in residuals) / (independent - 2) / spread * len(times) / independent)
    hour = 3600.0
    return Trend(slope * hour, (slope - 1.96 * error) * hour, (slope + 1.96 * error) * hour, values[0], values[-1], limit)


class Sampler(threading.Thread):
    """Samples the resources of the surviving web process, of PostgreSQL and of Redis once a second."""

    def __init__(self, world: World, web: WebProcess) -> None:
        super().__init__(daemon=True)
        self.times: list[float] = []
        self.values: dict[str, list[float]] = {name: [] for name in LIMITS_PER_HOUR}
        self.stopping = threading.Event()
        self._world, self._web = world, web

    def run(self) -> None:
        started = time.monotonic()
        while not self.stopping.wait(SAMPLE_SECONDS):
            try:
                sample = self._sample()
            except Exception as error:  # noqa: BLE001  (a server under a fault answers nothing)
                print(f"  no sample: {type(error).__name__}", flush=True)
                continue
            self.times.append(time.monotonic() - started)
            for name, value in sample.items():
                self.values[name].append(value)

    def _sample(self) -> dict[str, float]:
        processes = self._web.processes()
        redis = self._world.redis_client()
        try:
            keys = int(str(redis.dbsize()))
        finally:
            redis.close()
        return {
            "rss_bytes": self._web.resident_bytes(),
            "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in processes),
            "threads": sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in processes),
            "backends": self._world.backends(),
            "redis_keys": keys,
        }

    def trends(self) -> dict[str, Trend]:
        skipped = int(len(self.times) * WARM_UP_SHARE)
        return {name: trend(self.times[skipped:], values[skipped:], LIMITS_PER_HOUR[name]) for name, values in self.values.items()}


class Soak:
    """The servers, two web processes behind a balancer, and the faults."""

    def __init__(self, world: World, stack: ExitStack, balancer: Proxy) -> None:
        self.world, self.stack, self.balancer = world, stack, balancer
        self.steady = stack.enter_context(world.web(EVENTS_LIFETIME_SECONDS="40"))
        self._second = ExitStack()
        stack.callback(self._second.close)
        self._restart_second()
        self.faults: dict[str, Callable[[Seeded], None]] = {
            "every connection to the database cut": lambda _: world.terminate_backends(),
            "PostgreSQL restarted": lambda _: world.restart_postgres(),
            "PostgreSQL frozen for five seconds": lambda _: self._frozen(world.postgres),
            "Redis flushed": lambda _: self._flush(),
            "Redis frozen for five seconds": lambda _: self._frozen(world.redis),
            "Redis restarted": lambda _: self._restart_redis(),
            "every client cut off": lambda _: balancer.reset_all(),
            "a web process killed": lambda _: self._kill_second(),
            "readers that stop": self._stop_reading,
        }

    def _restart_second(self) -> None:
        other = self._second.enter_context(self.world.web(EVENTS_LIFETIME_SECONDS="40"))
        self.balancer.targets = [self.steady.address, other.address]
        self._other = other

    def _kill_second(self) -> None:
        self._other.kill()
        self._second.close()
        self._restart_second()

    def _restart_redis(self) -> None:
        self.world.stop_redis()
        self.world.start_redis()

    def _flush(self) -> None:
        client = self.world.redis_client()
        client.flushall()
        client.close()

    def _frozen(self, process: Process) -> None:
        self.world.freeze(process)
        time.sleep(5)
        self.world.thaw(process)

    def _stop_reading(self, tenant: Seeded) -> None:
        headers = {"Host": tenant.host, "Authorization": f"Bearer {tenant.token}", "Last-Event-ID": tenant.start}
        stuck = [Subscriber(self.balancer.address, headers=headers, receive_buffer=4096) for _ in range(10)]
        time.sleep(10)
        for stream in stuck:
            stream.close()

    def round(self, name: str, seconds: float) -> int:
        """Run writers and readers of streams for this many seconds, and cause one fault. Then check every guarantee.

        Return the number of events.
        """
        world, tenant = self.world, self.world.tenant()
        with Following() as following, world.writers(tenant, 2, think=0.02) as writers:
            address = self._address
            following.add(
                *(Follower(f"steady {number}", tenant, address, keep_bytes=False) for number in range(_STEADY)),
                *(Follower(f"churning {number}", tenant, address, cut_bytes=20_000, keep_bytes=False) for number in range(_CHURNING)),
            )
            ends = time.monotonic() + seconds
            eventually(lambda: writers.have_made(20), seconds=60)
            self.faults[name](tenant)
            time.sleep(max(ends - time.monotonic(), 0.0))
            writers.stop()
            eventually(lambda: world.is_numbered(tenant), seconds=30)
            following.all_at(world.head(tenant), seconds=60)
            following.stop()
            assert_never_failed(following)
            history = world.history(tenant, [writers], following.readers)
            assert_holds(history)
            return len(history.log) - tenant.base

    def _address(self) -> tuple[str, int]:
        return self.balancer.address


@contextmanager
def _running() -> Iterator[Soak]:
    world = World()
    try:
        with ExitStack() as stack:
            balancer = stack.enter_context(Proxy())
            yield Soak(world, stack, balancer)
    finally:
        world.close()


def _report(sampler: Sampler, rounds: list[dict[str, object]], place: Path, seed: int) -> bool:
    trends = sampler.trends()
    print(f"\n{'resource':12} {'first':>14} {'last':>14} {'per hour':>14} {'95 % interval':>32} {'allowed':>12}")
    for name, line in trends.items():
        interval = f"{line.low:,.0f} to {line.high:,.0f}"
        verdict = "  GROWS" if line.is_growth else ""
        print(f"{name:12} {line.first:14,.0f} {line.last:14,.0f} {line.per_hour:14,.0f} {interval:>32} {line.limit:12,.0f}{verdict}")
    result = {
        "seed": seed,
        "rounds": rounds,
        "trends": {name: asdict(line) | {"grows": line.is_growth} for name, line in trends.items()},
        "samples": {"seconds": sampler.times, **sampler.values},
    }
    place.write_text(json.dumps(result, indent=1))
    print(f"All samples are in {place}.")
    return not any(line.is_growth for line in trends.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", type=Path, default=Path(".data/soak.json"), help="file for the samples")
    options = parser.parse_args()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    rounds: list[dict[str, object]] = []
    with _running() as soak:
        sampler = Sampler(soak.world, soak.steady)
        sampler.start()
        names = list(soak.faults)
        order = random.Random(soak.world.seed)
        ends = time.monotonic() + options.minutes * 60
        while time.monotonic() < ends:
            if len(rounds) % len(names) == 0:
                order.shuffle(names)
            name, started = names[len(rounds) % len(names)], time.monotonic()
            events = soak.round(name, min(ROUND_SECONDS, ends - started))
            rounds.append({"fault": name, "events": events, "seconds": round(time.monotonic() - started, 1)})
            print(f"{len(rounds):3}  {name:38} {events:6} events, every guarantee held", flush=True)
        sampler.stopping.set()
        sampler.join()
        return 0 if _report(sampler, rounds, options.json, soak.world.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
