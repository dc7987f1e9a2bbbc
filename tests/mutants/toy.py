"""A source tree with one module and its tests, in which a program judges mutants in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "-p no:django -p no:schemathesis"\n'


def write_toy(tree: Path, *, guard: str, **tests: str) -> Path:
    """Write the module `toy.guard` and test files, which are given by their names without the suffix `.py`. Return the path of the tree."""
    (tree / "toy").mkdir()
    (tree / "toy" / "guard.py").write_text(guard)
    for name, text in tests.items():
        (tree / f"{name}.py").write_text(text)
    (tree / "pyproject.toml").write_text(_SETTINGS)
    return tree


def judged(program: str, tree: Path, *arguments: str) -> list[Any]:
    """Run a program with the tree and the arguments, and return the JSON list that it prints.

    The program runs in a separate process, because a fork of the test process would inherit the threads and plugins of the test process.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DJANGO_"))}
    command = [sys.executable, "-c", program, str(tree), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found
