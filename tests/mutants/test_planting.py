"""A mutant changes one symbol. It is stale if the symbol or the fragment is missing or occurs twice."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.planting import StaleMutant, mutated, planted

SOURCE = """\
LIMIT = 3


class Guard:
    @property
    def is_open(self) -> bool:
        return LIMIT > 3

    def is_shut(self) -> bool:
        return LIMIT > 3


def is_open() -> bool:
    return LIMIT > 4
"""
MUTANT = Mutant(name="toy", at="toy.guard:Guard.is_open", old="LIMIT > 3", new="True", rule="A guard is shut.", tests=("test_guard.py",))


def test_only_the_named_function_is_changed() -> None:
    head, _, rest = SOURCE.partition("return LIMIT > 3")
    assert mutated(SOURCE, MUTANT) == f"{head}return True{rest}"


@pytest.mark.parametrize(
    ("at", "old", "new"),
    [
        ("toy.guard:Guard.is_open", "@property\n", "@cached_property\n"),
        ("toy.guard:LIMIT", "3", "4"),
        ("toy.guard:Guard", "return LIMIT > 3\n\n", "return True\n\n"),
    ],
    ids=["decorator", "constant", "class"],
)
def test_decorators_and_constants_and_classes_can_be_changed(at: str, old: str, new: str) -> None:
    assert mutated(SOURCE, replace(MUTANT, at=at, old=old, new=new)) == SOURCE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("at", "old", "new", "reason"),
    [
        ("toy.guard:is_gone", "LIMIT", "0", "toy.guard defines is_gone 0 times"),
        ("toy.guard:is_open", "LIMIT > 3", "True", "the fragment occurs 0 times in toy.guard:is_open"),
        ("toy.guard:Guard", "LIMIT > 3", "True", "the fragment occurs 2 times in toy.guard:Guard"),
        ("toy.guard:is_open", "LIMIT > 4", "(LIMIT > 4)", "the replacement changes nothing"),
        ("toy.guard:is_open", "LIMIT > 4", "LIMIT >", "the replacement is no valid Python"),
    ],
)
def test_a_mutant_that_cannot_be_applied_is_stale(at: str, old: str, new: str, reason: str) -> None:
    with pytest.raises(StaleMutant, match=f"^{reason}"):
        mutated(SOURCE, replace(MUTANT, at=at, old=old, new=new))


def test_the_file_is_restored_and_no_bytecode_of_the_mutant_remains(tmp_path: Path) -> None:
    file = tmp_path / "toy" / "guard.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    bytecode = Path(importlib.util.cache_from_source(str(file)))
    bytecode.parent.mkdir()
    bytecode.touch()
    with planted(tmp_path, MUTANT):
        assert "return True" in file.read_text()
        assert not bytecode.exists()
        bytecode.touch()
    assert file.read_text() == SOURCE
    assert not bytecode.exists()


def test_a_mutant_of_a_missing_module_is_stale(tmp_path: Path) -> None:
    with pytest.raises(StaleMutant, match=r"^toy\.guard does not exist$"), planted(tmp_path, MUTANT):
        pass
