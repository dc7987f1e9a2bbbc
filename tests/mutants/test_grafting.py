"""The code of a function can be replaced in a running process. Every other change requires a new import."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.grafting import LoadedFunctions, graft_of, noted_calls

SOURCE = """\
import functools

LIMIT = 3


def is_open(age=LIMIT):
    return age > LIMIT


def noted(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call


class Guard:
    level = 1

    @noted
    def is_shut(self):
        return [self.level > each for each in (1, 2)]

    @property
    def size(self):
        return self.level * 2

    @size.setter
    def size(self, size):
        self.level = size / 2


is_shut = Guard.is_shut
"""


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[ModuleType]:
    file = tmp_path / "toy_guard.py"
    file.write_text(SOURCE)
    specification = importlib.util.spec_from_file_location("toy_guard", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["toy_guard"] = module
    with noted_calls(tmp_path) as called:
        specification.loader.exec_module(module)
    module.called = called  # type: ignore[attr-defined]
    yield module
    del sys.modules["toy_guard"]


def taken(toy: ModuleType, old: str, new: str) -> bool:
    file = Path(toy.__file__ or "")
    graft = graft_of(file, SOURCE, SOURCE.replace(old, new))
    functions = LoadedFunctions(file.parent, toy.called)
    if graft is None or not functions.can_take(graft):
        return False
    functions.take(graft)
    return True


def test_every_reference_to_a_function_has_the_changed_code(toy: ModuleType) -> None:
    before = toy.is_shut
    assert taken(toy, "self.level > each", "self.level >= each")
    assert before(toy.Guard()) == [True, False]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("age=LIMIT", "age=4"),
        ("level = 1", "level = 2"),
        ("    @noted\n", ""),
        ("        return function(*arguments)", "        return None"),
        ("self.level * 2", "self.level * 3"),
        ("size / 2", "size / 3"),
        ("return age > LIMIT", "return age > LIMIT  # the same"),
    ],
    ids=["constant", "default", "class", "decorator", "function that the import calls", "getter", "setter", "no change"],
)
def test_a_change_of_code_that_the_import_runs_needs_a_new_import(toy: ModuleType, old: str, new: str) -> None:
    assert not taken(toy, old, new)
    assert toy.is_open(4)
