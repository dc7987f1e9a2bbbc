"""Every pure module has tests, and a change of an annotation is not a mutant."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from config.launcher import tool_environment
from tests.mutants.planting import file_of
from tests.mutants.pure.__main__ import _ENVIRONMENT, _LISTING, _LOCK, _change, _matters
from tests.mutants.pure.modules import ROOT, files_near, pure_modules

SOURCE = "class Guard:\n    def level(self, age: int | None) -> int:\n        return 3\n"


def test_every_pure_module_exists_and_has_tests_that_exist() -> None:
    modules = pure_modules()
    assert len(modules) > 90
    assert [module for module in modules if not file_of(ROOT, module).is_file() or not files_near(module)] == []
    assert [test for module in modules for test in files_near(module) if not (ROOT / test).is_file()] == []


@pytest.mark.parametrize(("old", "new", "matters"), [("3", "4", True), ("int | None", "int & None", False), ("return 3", "return", True)])
def test_a_change_of_an_annotation_is_no_mutant(old: str, new: str, *, matters: bool) -> None:
    begin = SOURCE.index(old)
    change = _change(SOURCE, begin, begin + len(old), new, "operator")
    assert change.function == "Guard.level"
    assert _matters(SOURCE, change) is matters


@pytest.mark.deep
def test_the_mutants_of_a_module_with_dotted_exceptions_are_listed(tmp_path: Path) -> None:
    """cosmic-ray cannot replace an exception with a dotted name. The other mutants of the module must still be listed."""
    assert tool_environment.install(_LOCK, _ENVIRONMENT)
    source = tmp_path / "module.py"
    source.write_text(
        "def read(text):\n    try:\n        return int(text) + 1\n    except (binascii.Error, ValueError):\n        return 0\n"
    )
    command = [str(_ENVIRONMENT / "bin" / "python"), str(_LISTING), str(source)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"NumberReplacer", "ReplaceBinaryOperator_Add_Sub"} <= {json.loads(line)[3] for line in listed}
