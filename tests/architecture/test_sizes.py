"""Files, functions and folders stay small."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from config.env import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 400
LONGEST_FUNCTION = 40
MOST_FILES_AT_THE_ROOT_OF_AN_APP = 15
MOST_FILES = 30

# Files, functions and folders that may exceed a ceiling, each with one sentence that gives the reason: `path`, `path:function` or
# `folder/`.
LARGER: dict[str, str] = {}


def sources() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(("tests/", "benchmarks/")) and "/migrations/" not in name]


def too_long_files(ceiling: int) -> set[str]:
    return {str(file.relative_to(ROOT)) for file in sources() if file.read_text().count("\n") > ceiling}


def too_long_functions(ceiling: int) -> set[str]:
    """Return the functions with more lines than the ceiling. The number of lines includes docstrings and blank lines, but no decorators."""
    return {name for name, lines in functions() if lines > ceiling}


@cache
def functions() -> list[tuple[str, int]]:
    """Return all functions with their numbers of lines. Cached, because parsing takes two seconds."""
    return [
        (f"{file.relative_to(ROOT)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for file in sources()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def too_full_folders(at_the_root: int, elsewhere: int) -> set[str]:
    """Return the folders with more modules than the ceiling. The number of modules does not include `__init__.py`."""
    folders = Counter(file.parent.relative_to(ROOT) for file in sources() if file.name != "__init__.py")
    return {f"{folder}/" for folder, count in folders.items() if count > (at_the_root if len(folder.parts) == 1 else elsewhere)}


def test_no_file_is_longer_than_400_lines() -> None:
    assert too_long_files(LONGEST_FILE) - set(LARGER) == set()


def test_no_function_is_longer_than_40_lines() -> None:
    assert too_long_functions(LONGEST_FUNCTION) - set(LARGER) == set()


def test_no_folder_and_no_root_of_an_app_has_too_many_files() -> None:
    assert too_full_folders(MOST_FILES_AT_THE_ROOT_OF_AN_APP, MOST_FILES) - set(LARGER) == set()


def test_every_listed_exception_has_a_reason_and_still_exceeds_a_ceiling() -> None:
    larger = too_long_files(LONGEST_FILE) | too_long_functions(LONGEST_FUNCTION)
    assert set(LARGER) <= larger | too_full_folders(MOST_FILES_AT_THE_ROOT_OF_AN_APP, MOST_FILES)
    assert [name for name, reason in LARGER.items() if not reason.endswith(".") or len(reason.split()) < 5] == []


def test_the_size_checks_find_violations_of_lower_ceilings() -> None:
    assert too_long_files(250)
    assert too_long_functions(30)
    assert too_full_folders(12, 25)


def test_no_file_has_a_vague_name() -> None:
    refused = {"utils", "helpers", "common", "misc", "managers"}
    assert [file.name for file in sources() if file.stem in refused] == []


def test_every_setting_has_a_description() -> None:
    assert [setting.name for setting in SETTINGS.values() if len(setting.effect.split()) < 3] == []
