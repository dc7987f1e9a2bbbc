"""The order of a run of the fault tests, and its time limit: a pytest plugin of this folder.

`FAULT_MINUTES` limits a run: its tests run in a random order that `FAULT_SEED` repeats, and no test starts after the limit. Several
limited runs therefore cover all tests.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

import pytest

MINUTES_VARIABLE = "FAULT_MINUTES"
SEED_VARIABLE = "FAULT_SEED"
_SECONDS_PER_MINUTE = 60.0
_STARTED = pytest.StashKey[float]()


def seed() -> int:
    """Return the seed in the environment, or a random seed, which child processes inherit."""
    return int(os.environ.setdefault(SEED_VARIABLE, str(secrets.randbelow(2**32))))


def limit_seconds() -> float | None:
    """Return the time limit of the run, or None if it has no limit."""
    minutes = os.environ.get(MINUTES_VARIABLE)
    return float(minutes) * _SECONDS_PER_MINUTE if minutes else None


def shuffled(items: list[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Return the tests of the folder in the order of the seed, after all other tests."""
    inside = [item for item in items if item.path.is_relative_to(folder)]
    others = [item for item in items if not item.path.is_relative_to(folder)]
    # The order of collection can differ between runs, so sort the tests by name.
    return others + sorted(inside, key=lambda item: random.Random(f"{seed()} {item.nodeid}").random())


def skip_after_limit(stash: pytest.Stash, *, now: float | None = None) -> None:
    """Skip a test if the limit has passed since the first test of this run, whose start the stash keeps."""
    moment = time.monotonic() if now is None else now
    started = stash.setdefault(_STARTED, moment)
    limit = limit_seconds()
    if limit is not None and moment - started > limit:
        pytest.skip(f"the time of this run is over; {SEED_VARIABLE}={seed()} repeats its order")
