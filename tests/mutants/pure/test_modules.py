"""Each pure module has tests near it, and each mutant changes more than an annotation."""

from __future__ import annotations

import pytest

from tests.mutants.planting import file_of
from tests.mutants.pure.__main__ import _change, _matters
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
