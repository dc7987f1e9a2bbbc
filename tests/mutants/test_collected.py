"""A process collects the tests once, and judges each mutant in a new child."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutants.toy import judged, write_toy

JUDGE = """
import json, sys
from pathlib import Path
from tests.mutants.collected import collected
from tests.mutants.grafting import graft_of
copy = Path(sys.argv[1])
file = copy / "toy" / "guard.py"
original = file.read_text()
verdicts = []
with collected(copy, ["test_guard.py", "test_name.py"]) as ready:
    for old, new, tests in json.loads(sys.argv[2]):
        judgement = ready.judge(tests, graft_of(file, original, original.replace(old, new)) if old else {}, float(sys.argv[3]))
        verdicts.append(None if judgement is None else [judgement.verdict.value, judgement.detail])
print(json.dumps(verdicts))
"""
GUARD = """\
def is_allowed(age: int) -> bool:
    return age >= 18


def waits() -> None:
    return None


def default() -> int:
    return 18


CASES = [default()]
"""
TEST = """\
import pytest
from toy.guard import CASES, is_allowed, waits

seen = []


def test_children_are_refused() -> None:
    assert not is_allowed(17)


@pytest.mark.parametrize("age", CASES)
def test_adults_are_allowed(age: int) -> None:
    waits()
    assert is_allowed(age)


def test_no_other_run_left_state() -> None:
    seen.append(1)
    assert seen == [1]
"""
CHILDREN = "test_guard.py::test_children_are_refused"
ADULTS = "test_guard.py::test_adults_are_allowed[18]"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Create a source tree with one module and two test files, and return its path."""
    return write_toy(tmp_path, guard=GUARD, test_guard=TEST, test_name="def test_nothing() -> None:\n    pass\n")


def verdicts_on(tree: Path, *requests: tuple[str, str, list[str]], seconds: float = 120.0) -> list[tuple[str, str] | None]:
    found = judged(JUDGE, tree, json.dumps(requests), str(seconds))
    return [None if verdict is None else (verdict[0], verdict[1]) for verdict in found]


def test_each_mutant_is_judged_by_the_named_tests_without_the_state_of_other_mutants(toy: Path) -> None:
    both = ["test_guard.py", "test_name.py"]
    assert verdicts_on(
        toy,
        ("", "", both),
        ("age >= 18", "True", both),
        ("age >= 18", "True", [ADULTS]),
        ("age >= 18", "age > 18", [CHILDREN, ADULTS]),
        ("", "", both),
    ) == [("missed", ""), ("caught", CHILDREN), ("missed", ""), ("caught", ADULTS), ("missed", "")]


def test_a_mutant_that_never_ends_is_broken_and_the_next_mutant_is_judged(toy: Path) -> None:
    endless = ("return None", "import time; time.sleep(3600)", [ADULTS])
    assert verdicts_on(toy, endless, ("", "", [ADULTS]), seconds=20.0) == [
        ("broken", "the tests did not end within 20 seconds"),
        ("missed", ""),
    ]


@pytest.mark.parametrize(
    ("old", "new", "test"),
    [
        pytest.param("return 18", "return 17", ADULTS, id="code that ran during the collection"),
        pytest.param("age >= 18", "True", "test_guard.py::test_gone", id="a test that does not exist"),
    ],
)
def test_a_change_that_the_collected_tests_cannot_judge_is_refused(toy: Path, old: str, new: str, test: str) -> None:
    assert verdicts_on(toy, (old, new, [test]), ("", "", [ADULTS])) == [None, ("missed", "")]
