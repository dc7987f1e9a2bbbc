"""The choice of the tests for a mutant: the tests that execute the changed statement, or all tests that could notice its change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.mutants.seeded.near_tests import NearTests, Noted, statement_at
from tests.mutants.seeded.operators import Change

FILE = "toy/guard.py"
SOURCE = """\
LIMIT = 18


def is_open(hour: int) -> bool:
    if (
        hour < LIMIT
        and hour > 8
    ):
        return True
    try:
        return bool(
            hour
        )
    except ValueError:
        return False


def close() -> None:
    pass
"""


def noted(seconds: float, lines: Sequence[int]) -> Noted:
    return Noted(seconds, frozenset({f"{FILE}:is_open"} if lines else ()), {FILE: frozenset(lines)})


NOTES = {
    "test_b.py::slow": noted(3.0, [5, 6, 10, 11]),
    "test_a.py::early": noted(0.2, [5, 6, 7, 9]),
    "test_b.py::quick": noted(0.1, [5, 6, 7, 9]),
    "test_a.py::other": noted(0.3, []),
}
ALL = ("test_a.py::early", "test_a.py::other", "test_b.py::quick", "test_b.py::slow")


def chosen(line: int, function: str = "is_open", *, in_process: bool = False, most_seconds: float | None = None) -> tuple[str, ...]:
    near = NearTests(NOTES, frozenset({f"{FILE}:close"}), in_process)
    change = Change(0, 1, "a", "b", "operator", function or "module", line, function)
    return near.of(FILE, SOURCE, change, most_seconds=most_seconds)


@pytest.mark.parametrize(
    ("line", "function", "tests"),
    [
        pytest.param(9, "is_open", ("test_b.py::quick", "test_a.py::early"), id="executed by some tests"),
        pytest.param(12, "is_open", ("test_b.py::slow",), id="inside of an executed statement"),
        pytest.param(7, "is_open", ("test_a.py::early", "test_b.py::quick", "test_b.py::slow"), id="in a condition"),
        pytest.param(15, "is_open", ("test_a.py::early", "test_b.py::quick", "test_b.py::slow"), id="not executed in a called function"),
        pytest.param(19, "close", ALL, id="called by the collection"),
        pytest.param(19, "lock", ALL, id="called by no test"),
        pytest.param(1, "", ALL, id="outside of functions"),
    ],
)
def test_the_chosen_tests_execute_the_changed_statement_or_could_notice_its_change(
    line: int, function: str, tests: tuple[str, ...]
) -> None:
    assert chosen(line, function) == tests


def test_no_test_is_chosen_for_an_unexecuted_statement_if_tests_use_no_other_process() -> None:
    assert chosen(15, in_process=True) == ()
    assert chosen(1, "", in_process=True) == ALL


def test_tests_are_chosen_until_the_sum_of_their_times_reaches_the_limit() -> None:
    assert chosen(7, most_seconds=0.3) == ("test_a.py::early", "test_b.py::quick")


@pytest.mark.parametrize(
    ("line", "span"),
    [(1, (1, 1)), (4, (4, 4)), (6, (5, 8)), (9, (9, 9)), (10, (10, 10)), (12, (11, 13)), (14, (14, 14)), (15, (15, 15))],
)
def test_a_compound_statement_ends_before_its_body(line: int, span: tuple[int, int]) -> None:
    assert statement_at(SOURCE, line) == span
