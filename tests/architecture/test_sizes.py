"""Files and functions that fit on a few screens."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

from config.env import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 400
LONGEST_FUNCTION = 40


def sources() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(("tests/", "benchmarks/")) and "/migrations/" not in name]


def test_no_file_is_longer_than_400_lines() -> None:
    long = {str(file.relative_to(ROOT)) for file in sources() if file.read_text().count("\n") > LONGEST_FILE}
    assert long == set()


def test_no_function_is_longer_than_40_lines() -> None:
    functions = [
        (f"{file.relative_to(ROOT)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for file in sources()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [name for name, lines in functions if lines > LONGEST_FUNCTION] == []


def test_no_file_is_named_for_nothing() -> None:
    refused = {"utils", "helpers", "common", "misc", "managers"}
    assert [file.name for file in sources() if file.stem in refused] == []


def test_every_setting_is_documented_by_its_reader() -> None:
    assert [setting.name for setting in SETTINGS.values() if len(setting.effect.split()) < 3] == []
