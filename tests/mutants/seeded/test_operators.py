"""The mutation operators change each kind of expression and statement, and skip code whose change no test of behavior can notice."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.planting import file_of
from tests.mutants.seeded.__main__ import ROOT, drawn
from tests.mutants.seeded.areas import AREAS
from tests.mutants.seeded.operators import changes_of
from tests.mutants.seeded.survivors import SURVIVORS


def replaced(source: str, operator: str) -> list[str]:
    return [change.applied(source) for change in changes_of(source) if change.operator == operator]


@pytest.mark.parametrize(
    ("operator", "source", "mutants"),
    [
        ("comparison", "a < b", ["a <= b"]),
        ("comparison", "a is None", ["a is not None"]),
        ("boolean", "x = a and b", ["x = (a or b)"]),
        ("boolean", "x = not a", ["x = (a)"]),
        ("removed condition", "x = a and b", ["x = (b)", "x = (a)"]),
        ("removed condition", "x = [a for a in b if c]", ["x = [a for a in b if True]"]),
        ("calculation", "x = a + b", ["x = (a - b)"]),
        ("constant", "x = 3", ["x = 4"]),
        ("constant", "x = 'é' + 'b'", ["x = \"\" + 'b'", "x = 'é' + \"\""]),
        ("removed statement", "call()", ["pass"]),
        ("swapped argument", "x = call(a, b, c)", ["x = call(b, a, c)"]),
        ("returned value", "def f():\n    return a", ["def f():\n    return None"]),
        (
            "SQL",
            "x = 'SELECT 1 FROM t WHERE a <= b FOR UPDATE'",
            ["x = 'SELECT 1 FROM t WHERE a < b FOR UPDATE'", "x = 'SELECT 1 FROM t WHERE a <= b'"],
        ),
        ("SQL", "x = f'DELETE FROM t WHERE a = {b} AND c = %s RETURNING d'", ["x = f'DELETE FROM t WHERE a = {b} RETURNING d'"]),
    ],
)
def test_each_mutant_of_an_operator_changes_one_piece_of_the_source(operator: str, source: str, mutants: list[str]) -> None:
    assert sorted(replaced(source, operator)) == sorted(mutants)


@pytest.mark.parametrize("source", ['"""A docstring."""', "logger.info('a', b)", "import a", "def f(a: int) -> 'int': ..."])
def test_no_mutant_changes_docstrings_logs_imports_or_annotations(source: str) -> None:
    assert changes_of(source) == []


def test_one_seed_draws_the_same_mutants_and_another_seed_draws_other_mutants() -> None:
    area = AREAS[0]
    assert drawn(area, ROOT, seed=1, count=40) == drawn(area, ROOT, seed=1, count=40)
    assert drawn(area, ROOT, seed=1, count=40) != drawn(area, ROOT, seed=2, count=40)


def test_every_area_has_forty_mutants_that_are_valid_python() -> None:
    for area in AREAS:
        mutants, _ = drawn(area, ROOT, seed=1, count=40)
        assert len(mutants) == 40, area.name
        for module, change in mutants:
            ast.parse(change.applied(file_of(ROOT, module).read_text()))


def test_the_tests_of_every_area_exist() -> None:
    assert [test for area in AREAS for test in area.tests if not (ROOT / test).is_file()] == []


def test_every_survivor_is_a_mutant_of_the_present_source_and_has_a_reason() -> None:
    stale = []
    for survivor in SURVIVORS:
        changes = changes_of(file_of(ROOT, survivor.module).read_text())
        if not any(survivor.is_about(survivor.module, change) for change in changes) or len(survivor.reason.split()) < 4:
            stale.append(survivor)
    assert stale == []
