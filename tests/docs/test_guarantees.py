"""Each promise in the guarantees refers to tests and mutants that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.mutants.catalog import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
NAMES = tuple(mutant.name for mutant in MUTANTS)


def rows_of(page: str) -> Iterator[list[str]]:
    """Yield the cells of each promise."""
    _, _, tables = page.partition("\n## Guaranteed\n")
    for line in tables.partition("\n## ")[0].splitlines():
        if line.startswith("| ") and not line.startswith("| Promise |"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def named_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def problems_of(page: str) -> list[str]:
    problems = []
    for promise, *others in rows_of(page):
        if len(others) != 2:
            problems.append(f"{promise}: needs a cell of tests and a cell of mutants")
            continue
        tests, mutants = (named_in(cell) for cell in others)
        problems += [f"{promise}: {test} does not exist" for test in tests if not any((ROOT / "tests").glob(test.rstrip("/")))]
        problems += [f"{promise}: {name} does not exist" for name in mutants if not any(fnmatchcase(known, name) for known in NAMES)]
        problems += [f"{promise}: no {kind}" for kind, found in (("test", tests), ("mutant", mutants)) if not found]
    return problems


def test_every_promise_names_tests_and_mutants_that_exist() -> None:
    assert len(list(rows_of(PAGE.read_text()))) > 100
    assert problems_of(PAGE.read_text()) == []


@pytest.mark.parametrize(
    ("tests", "mutants", "problem"),
    [
        ("`events/test_log.py`", "", "no mutant"),
        ("by review", "`events-page-hole`", "no test"),
        ("`events/test_gone.py`", "`events-page-hole`", "events/test_gone.py does not exist"),
        ("`events/test_log.py`", "`events-gone`", "events-gone does not exist"),
    ],
)
def test_a_promise_without_an_existing_test_or_mutant_is_reported(tests: str, mutants: str, problem: str) -> None:
    assert problems_of(f"\n## Guaranteed\n| A promise | {tests} | {mutants} |\n") == [f"A promise: {problem}"]


def test_a_promise_without_a_cell_of_mutants_is_reported() -> None:
    page = "\n## Guaranteed\n| A promise | `events/test_log.py` |\n"
    assert problems_of(page) == ["A promise: needs a cell of tests and a cell of mutants"]
