"""The house tour is short, and every path and symbol in it exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOUR = (ROOT / "docs" / "house-tour.md").read_text()
MOST_ROWS = 40

_ROW = re.compile(r"^\| (?!Idea \|)(?P<idea>[^|]+) \| (?P<place>[^|]+) \|$", re.MULTILINE)
_NAMED = re.compile(r"`([^`\n]+)`")
# A function, a class, or a class and a function with a dot between them, such as `Stream.run`. `_OF_OTHERS` contains names of Django.
_SYMBOL = re.compile(r"(?:[A-Za-z_]\w*\.)?(?P<last>[A-Za-z_]\w*)(?:\(\))?")
_DEFINED = re.compile(r"(?:def|class|FUNCTION) (\w+)|(\w+) = |\.(\w+)\"")
_OF_OTHERS = frozenset({"on_commit", "post_save", "post_delete"})


def _places() -> str:
    return TOUR[TOUR.index("| Idea |") : TOUR.index("## How one event flows")]


def test_the_list_has_at_most_40_rows() -> None:
    assert 30 < len(_ROW.findall(_places())) <= MOST_ROWS


def test_every_path_in_the_list_exists() -> None:
    named = [name for row in _ROW.finditer(_places()) for name in _NAMED.findall(row["place"])]

    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_symbol_in_the_text_exists() -> None:
    text = TOUR[TOUR.index("## How one event flows") :]
    symbols = {found["last"] for name in _NAMED.findall(text) if (found := _SYMBOL.fullmatch(name))} - _OF_OTHERS
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    code = "\n".join((ROOT / name).read_text() for name in listed if not name.startswith(("tests/", "benchmarks/")))

    assert len(symbols) > 50
    assert sorted(symbols - {name for names in _DEFINED.findall(code) for name in names}) == []
