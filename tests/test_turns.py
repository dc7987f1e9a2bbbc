"""`tests.turns` divides the cases of a test into parts, and selects the part that runs on a given day."""

from __future__ import annotations

import pytest

from tests import turns


@pytest.mark.parametrize("cases", [1, 4, 5, 8, 9, 13, 16, 17, 318])
def test_four_consecutive_turns_run_every_case_and_each_turn_runs_some_cases(cases: int) -> None:
    for first in (0, 3, 20_000):
        run = [{place for place in range(cases) if turns.is_run(place, cases, first + day)} for day in range(turns.DAYS)]
        assert set().union(*run) == set(range(cases))
        assert all(run)


@pytest.mark.parametrize("cases", [1, 2, 3, 4])
def test_every_turn_runs_all_cases_if_there_are_few(cases: int) -> None:
    assert all(turns.is_run(place, cases, turn) for place in range(cases) for turn in range(9))


def test_a_turn_runs_at_least_a_quarter_of_many_cases() -> None:
    assert {sum(turns.is_run(place, 400, turn) for place in range(400)) for turn in range(4)} == {100}
