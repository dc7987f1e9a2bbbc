"""The order of a run of the fault tests, and its time limit: a pytest plugin of this folder.

If `FAULT_MINUTES` limits a run, the order is random; a run with the same `FAULT_SEED` has the same order. A test starts only if enough time
is left for it. So only short tests start near the end of a run. The order differs between runs, so several limited runs cover all tests.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

MINUTES_VARIABLE = "FAULT_MINUTES"
SEED_VARIABLE = "FAULT_SEED"
_SECONDS_PER_MINUTE = 60.0
# Tests that are expected to take less time than this are not used to measure how slow the machine is: the time of a short test varies too
# much.
_ENOUGH_SECONDS = 10.0
# The time for stopping the servers at the end of a run.
_END_SECONDS = 5.0


def seed() -> int:
    """Return the seed in the environment. If the environment has no seed, add a random seed, which child processes then inherit."""
    return int(os.environ.setdefault(SEED_VARIABLE, str(secrets.randbelow(2**32))))


def limit_seconds() -> float | None:
    """Return the time limit of the run, or None if it has no limit."""
    minutes = os.environ.get(MINUTES_VARIABLE)
    return float(minutes) * _SECONDS_PER_MINUTE if minutes else None


def shuffled(items: list[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Return the tests of the folder in the order of the seed, after all other tests."""
    inside = [item for item in items if item.path.is_relative_to(folder)]
    others = [item for item in items if not item.path.is_relative_to(folder)]
    # The order of collection can differ between runs. So compute the place of each test only from the seed and the name of the test.
    return others + sorted(inside, key=lambda item: random.Random(f"{seed()} {item.nodeid}").random())


def process_began() -> float:
    """Return the start of this process by the monotonic clock. The time of a run is counted from this start, because the servers of a
    run are started before this plugin is loaded."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks_since_boot = int(fields[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks_since_boot / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - age


def load_per_core() -> float:
    """Return the load average of the last minute, divided by the number of cores."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def tested_nothing(*, found: int, started: int) -> bool:
    """Report whether the run has a time limit and found fault tests, but had no time to start any of them."""
    return limit_seconds() is not None and found > 0 and started == 0


@dataclass
class Budget:
    """The time of a run that began at `began`: how much is left, and how slow the machine is."""

    began: float
    limit: float | None
    _expected: float = 0.0
    _taken: float = 0.0

    def slowness(self, load: float) -> float:
        """Return by which factor this machine is slower than an idle machine, estimated from the tests of this run and the load."""
        measured = self._taken / self._expected if self._expected >= _ENOUGH_SECONDS else 1.0
        return max(1.0, measured, load)

    def has_time_for(self, expected: float, *, now: float, load: float) -> bool:
        """Report whether the run ends before its limit if it now starts a test that takes `expected` seconds on an idle machine."""
        needed = (expected + _END_SECONDS) * self.slowness(load)
        return self.limit is None or now - self.began + needed <= self.limit

    def note(self, expected: float, taken: float) -> None:
        """Add the expected and the measured seconds of a test with its fixtures."""
        self._expected += expected
        self._taken += taken
