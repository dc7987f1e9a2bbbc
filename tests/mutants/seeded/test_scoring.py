"""A mutant is tried with the tests that use the changed function."""

from __future__ import annotations

import pytest

from tests.mutants.seeded.operators import Change
from tests.mutants.seeded.scoring import Calls

CALLS = Calls(
    of_tests={"quick": frozenset({"toy/guard.py:is_open"}), "slow": frozenset({"toy/guard.py:is_open", "toy/guard.py:close"})},
    of_collection=frozenset({"toy/guard.py:close"}),
)


@pytest.mark.parametrize(
    ("function", "tests"),
    [
        pytest.param("is_open", ("quick", "slow"), id="called by tests"),
        pytest.param("close", ("all",), id="called by the collection"),
        pytest.param("lock", ("all",), id="called by no test"),
        pytest.param("", ("all",), id="outside of functions"),
    ],
)
def test_all_tests_try_a_mutant_unless_only_some_tests_use_its_function(function: str, tests: tuple[str, ...]) -> None:
    change = Change(0, 1, "a", "b", "operator", function or "module", 1, function)
    assert CALLS.tests_of("toy.guard", change, ("all",)) == tests
