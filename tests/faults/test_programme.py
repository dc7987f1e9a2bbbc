"""The order and the time limit of a run of the fault tests."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import programme
from tests.faults.durations import SECONDS, expected_seconds
from tests.faults.programme import Budget

FOLDER = Path(__file__).parent
LONG = 35.0
SHORT = 10.0


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(programme.SEED_VARIABLE, "7")
    monkeypatch.setenv(programme.MINUTES_VARIABLE, "5")


@pytest.fixture
def items(request: pytest.FixtureRequest) -> list[pytest.Item]:
    return [item for item in request.session.items if item.path == Path(__file__)]


def test_a_run_without_a_seed_chooses_a_seed_that_child_processes_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programme.SEED_VARIABLE)
    assert programme.seed() == programme.seed()


def test_the_same_seed_repeats_the_order_and_another_seed_gives_another_order(
    items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(items) > 3
    first = programme.shuffled(items, FOLDER)
    assert programme.shuffled(items[::-1], FOLDER) == first
    orders = set()
    for seed in range(20):
        monkeypatch.setenv(programme.SEED_VARIABLE, str(seed))
        orders.add(tuple(item.nodeid for item in programme.shuffled(items, FOLDER)))
    assert len(orders) > 1
    assert all(sorted(order) == sorted(item.nodeid for item in items) for order in orders)


def test_the_start_of_a_run_is_the_start_of_its_process() -> None:
    before = time.monotonic()
    printed = subprocess.run(
        [sys.executable, "-c", "import time; from tests.faults import programme; print(programme.process_began(), time.monotonic())"],
        cwd=FOLDER.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    began, loaded = map(float, printed.split())
    # The kernel counts the start of a process in hundredths of a second.
    assert before - 0.02 <= began < loaded <= time.monotonic()


def seconds_for(expected: float) -> float:
    """Return how many seconds before the time limit a test of this length may still start on an idle machine."""
    budget = Budget(began=0.0, limit=1000.0)
    return next(1000.0 - now for now in range(1000, 0, -1) if budget.has_time_for(expected, now=now, load=0.0))


def test_no_test_starts_after_the_time_limit() -> None:
    budget = Budget(began=1000.0, limit=300.0)
    assert not budget.has_time_for(SHORT, now=1301.0, load=0.0)
    assert not budget.has_time_for(SHORT, now=1299.0, load=0.0)


def test_only_short_tests_start_near_the_time_limit() -> None:
    budget = Budget(began=1000.0, limit=300.0)
    now = 1300.0 - seconds_for(LONG)
    assert seconds_for(LONG) > LONG
    assert budget.has_time_for(LONG, now=now, load=0.0)
    assert not budget.has_time_for(LONG, now=now + 1, load=0.0)
    assert budget.has_time_for(SHORT, now=now + 1, load=0.0)


def test_a_loaded_machine_is_expected_to_take_longer() -> None:
    budget = Budget(began=1000.0, limit=300.0)
    now = 1300.0 - 2 * seconds_for(LONG)
    assert budget.has_time_for(LONG, now=now, load=2.0)
    assert not budget.has_time_for(LONG, now=now, load=2.1)


def test_earlier_tests_show_how_slow_the_machine_is() -> None:
    budget = Budget(began=1000.0, limit=300.0)
    budget.note(LONG, 3 * LONG)
    now = 1300.0 - 3 * seconds_for(LONG)
    assert budget.has_time_for(LONG, now=now, load=0.0)
    assert not budget.has_time_for(LONG, now=now + 1, load=0.0)


def test_a_fast_machine_is_not_expected_to_stay_fast() -> None:
    budget = Budget(began=1000.0, limit=300.0)
    budget.note(LONG, 1.0)
    assert not budget.has_time_for(LONG, now=1300.0 - seconds_for(LONG) + 1, load=0.0)


def test_a_run_fails_if_its_time_limit_prevents_every_fault_test(monkeypatch: pytest.MonkeyPatch) -> None:
    assert programme.tested_nothing(found=5, started=0)
    assert not programme.tested_nothing(found=5, started=1)
    # A run of other files contains no fault test.
    assert not programme.tested_nothing(found=0, started=0)
    monkeypatch.delenv(programme.MINUTES_VARIABLE)
    assert not programme.tested_nothing(found=5, started=0)


def test_a_test_that_starts_its_world_is_expected_to_take_longer() -> None:
    name = next(iter(SECONDS))
    assert expected_seconds(f"{name}[case]") == SECONDS[name]
    assert expected_seconds(name, starts_world=True) > SECONDS[name]


def test_a_run_without_a_time_limit_starts_every_test() -> None:
    assert Budget(began=0.0, limit=None).has_time_for(LONG, now=10.0**9, load=100.0)


def test_each_listed_duration_belongs_to_a_fault_test() -> None:
    source = "".join(path.read_text() for path in FOLDER.glob("test_*.py"))
    assert [name for name in SECONDS if f"def {name}(" not in source] == []
