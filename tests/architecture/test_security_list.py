"""The rows of the lists in `docs/security.md` name only tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "docs" / "security.md"
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of every row of the lists, without the table heads."""
    lines = [line for line in LIST.read_text().splitlines() if line.startswith("| ") and "Tested by" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@cache
def names_in(path: str) -> frozenset[str]:
    found = ROOT / path if path.startswith("tests/") else ROOT / "tests" / "authapi" / path
    assert found.exists(), path
    tree = ast.parse(found.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_row_names_existing_tests() -> None:
    missing = []
    for *_, held in rows():
        named = _NAMED.findall(held)
        assert named, held
        missing += [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    assert missing == []


def test_each_list_of_asvs_chapters_9_and_10_has_one_row_for_every_requirement() -> None:
    text = LIST.read_text()
    chapters = {"9.1": 3, "9.2": 4, "10.1": 2, "10.2": 3, "10.3": 5, "10.4": 16, "10.5": 5, "10.6": 2, "10.7": 3}
    for section, count in chapters.items():
        assert len(re.findall(rf"^\| {re.escape(section)}\.\d+ \|", text, re.MULTILINE)) == count, section
