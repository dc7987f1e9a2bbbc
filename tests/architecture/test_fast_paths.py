"""A fast path is a module of its own. The first line of its docstring says that the module is a fast path.

The docstring also names the plain path, which gives the same results more slowly, and the page with the measurement. `docs/figures.md`
lists each fast path with the test that compares it with its plain path.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from config.manual.source import APPS

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| `([\w/]+\.py)` \| [^|]+ \| [^|]+ \| `([\w/]+\.py)` \|$", re.MULTILINE)


@cache
def docstrings() -> dict[str, str]:
    """Map the file name of each fast path to the docstring of the module."""
    files = [file for app in APPS for file in (ROOT / app).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): ast.get_docstring(ast.parse(file.read_text())) or "" for file in files}
    return {path: text for path, text in found.items() if text.startswith("Fast path: ")}


def test_every_fast_path_is_listed_with_a_measurement_and_a_test_that_exists() -> None:
    listed = dict(_ROW.findall((ROOT / "docs" / "figures.md").read_text()))
    assert listed.keys() == docstrings().keys()
    assert [test for test in listed.values() if not (ROOT / "tests" / test).exists()] == []


def test_every_fast_path_names_its_plain_path_and_the_page_with_its_measurement() -> None:
    for path, text in docstrings().items():
        assert "plain path" in text, path
        assert re.search(r"docs/(figures|performance)\.md|has the\s+figure", text), path
