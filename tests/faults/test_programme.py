"""The order and the time limit of a run of the fault tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.outcomes import Skipped

from tests.faults import programme

FOLDER = Path(__file__).parent


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


def test_the_same_seed_repeats_the_order_and_another_seed_changes_it(items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(items) > 3
    first = programme.shuffled(items, FOLDER)
    assert programme.shuffled(items[::-1], FOLDER) == first
    orders = set()
    for seed in range(20):
        monkeypatch.setenv(programme.SEED_VARIABLE, str(seed))
        orders.add(tuple(item.nodeid for item in programme.shuffled(items, FOLDER)))
    assert len(orders) > 1
    assert all(sorted(order) == sorted(item.nodeid for item in items) for order in orders)


def test_no_test_starts_after_the_time_limit() -> None:
    stash = pytest.Stash()
    programme.skip_after_limit(stash, now=1000.0)
    programme.skip_after_limit(stash, now=1299.0)
    with pytest.raises(Skipped, match="FAULT_SEED=7"):
        programme.skip_after_limit(stash, now=1301.0)


def test_a_run_without_a_time_limit_skips_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programme.MINUTES_VARIABLE)
    stash = pytest.Stash()
    programme.skip_after_limit(stash, now=0.0)
    programme.skip_after_limit(stash, now=10.0**9)
