"""The catalog of mutants: every mutant can still be applied to the source, and all its tests exist."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.planting import StaleMutant, file_of, mutated

ROOT = Path(__file__).resolve().parents[2]
AREAS = {"foundation", "identity", "authapi", "events", "provisioning", "config"}


@cache
def source_of(file: Path) -> str:
    return file.read_text()


@cache
def names_in(file: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def problem_of(mutant: Mutant) -> str | None:
    try:
        mutated(source_of(file_of(ROOT, mutant.module)), mutant)
    except StaleMutant as stale:
        return str(stale)
    for test in mutant.tests:
        path, _, name = test.partition("::")
        if not (ROOT / path).is_file() or (name and name.partition("[")[0] not in names_in(ROOT / path)):
            return f"{test} does not exist"
    return None


def test_every_mutant_can_be_applied_and_its_tests_exist() -> None:
    assert {mutant.name: problem for mutant in MUTANTS if (problem := problem_of(mutant))} == {}


def test_a_mutant_that_names_a_missing_test_is_reported() -> None:
    mutant = replace(MUTANTS[0], tests=("tests/mutants/test_catalog.py::test_that_does_not_exist",))
    assert problem_of(mutant) == "tests/mutants/test_catalog.py::test_that_does_not_exist does not exist"


def test_names_of_mutants_are_unique_and_begin_with_the_area() -> None:
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []
    assert [mutant.name for mutant in MUTANTS if not mutant.name.startswith(f"{mutant.room}-")] == []


def test_the_tests_of_a_mutant_are_grouped_by_folder() -> None:
    """If pytest leaves a folder and later returns to it, pytest does not find the fixtures of the folder.

    The test with the missing fixture fails, and the mutant would be counted as caught.
    """
    folders = {
        mutant.name: [folder for folder, _ in groupby(Path(test.partition("::")[0]).parent for test in mutant.tests)] for mutant in MUTANTS
    }
    assert [name for name, visited in folders.items() if len(visited) != len(set(visited))] == []


def test_every_area_has_mutants() -> None:
    assert {mutant.room for mutant in MUTANTS} == AREAS


def test_every_rule_is_a_sentence_and_every_mutant_has_tests() -> None:
    assert [mutant.name for mutant in MUTANTS if not mutant.rule.endswith(".") or len(mutant.rule.split()) < 4] == []
    assert [mutant.name for mutant in MUTANTS if not mutant.tests] == []
