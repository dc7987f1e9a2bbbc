"""The verdict of a run: the mutant is caught by a test, missed by every test, or broken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.mutants.catalog import MUTANTS
from tests.mutants.running import copied_tree
from tests.mutants.toy import ROOT, judged, write_toy

JUDGE = """
import importlib, json, sys
from pathlib import Path
from tests.mutants.mutant import Mutant
from tests.mutants.running import runner
verdicts = []
with runner(Path(sys.argv[1]), lambda: importlib.import_module("toy.guard")) as using:
    for changed in json.loads(sys.argv[2]):
        judgement = using.judge(Mutant(name="toy", rule="A toy.", **changed))
        verdicts.append([judgement.verdict.value, judgement.detail])
print(json.dumps(verdicts))
"""
GUARD = "def is_allowed(age: int) -> bool:\n    return age >= 18\n\n\ndef name() -> str:\n    return 'guard'\n"
TEST = "from toy.guard import is_allowed\n\n\ndef test_children_are_refused() -> None:\n    assert not is_allowed(17)\n"
AT = "toy.guard:is_allowed"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Create a source tree with one module and one test, and return its path. The test does not check the boundary value."""
    return write_toy(tmp_path, guard=GUARD, test_guard=TEST)


def verdicts_on(tree: Path, *mutants: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(verdict, detail) for verdict, detail in judged(JUDGE, tree, json.dumps(mutants))]


def test_a_mutant_is_reported_as_caught_or_as_missed_or_as_broken(toy: Path) -> None:
    caught = {"at": AT, "old": "age >= 18", "new": "True", "tests": ["test_guard.py"]}
    missed = {**caught, "new": "age > 18"}
    stale = {**caught, "old": "age >= 21"}
    not_importable = {"at": AT, "old": "age: int", "new": "age: nothing", "tests": ["test_guard.py"]}
    no_test = {**caught, "tests": ["test_gone.py"]}
    assert verdicts_on(toy, caught, missed, stale, not_importable, no_test, caught) == [
        ("caught", "test_guard.py::test_children_are_refused"),
        ("missed", ""),
        ("broken", f"the fragment occurs 0 times in {AT}"),
        ("broken", "pytest ended with 2 before any test failed"),
        ("broken", "pytest ended with 4 before any test failed"),
        ("caught", "test_guard.py::test_children_are_refused"),
    ]
    assert (toy / "toy" / "guard.py").read_text() == GUARD


def test_the_first_mutant_does_not_affect_the_next_run(toy: Path) -> None:
    """The import of the toy takes a second, because the import of the product takes long, too.

    The first mutant must not be planted before the import is complete. Otherwise, the import would load the
    first mutant, and the second run would contain it, too.
    """
    (toy / "toy" / "__init__.py").write_text("import time\ntime.sleep(1)\n")
    planted = {"at": AT, "old": "age >= 18", "new": "True", "tests": ["test_guard.py"]}
    harmless = {**planted, "at": "toy.guard:name", "old": "'guard'", "new": "str('guard')"}
    assert verdicts_on(toy, planted, harmless) == [("caught", "test_guard.py::test_children_are_refused"), ("missed", "")]


def test_a_mutant_is_caught_although_the_product_has_registered_its_transports(toy: Path) -> None:
    """The process that runs the mutants has imported the product, and the import registers the transports.

    A run must not use the transports of the unchanged product.
    """
    (toy / "config").mkdir()
    register = "def register() -> None:\n    TRANSPORT_ALIASES['redis'] = 'config.own:Own'\n"
    (toy / "config" / "own.py").write_text(f"from kombu.transport import TRANSPORT_ALIASES\n\n\n{register}\n\nregister()\n")
    (toy / "test_guard.py").write_text(
        "from kombu.transport import TRANSPORT_ALIASES\nimport config.own\n\n\ndef test_it_is_registered() -> None:\n"
        "    assert TRANSPORT_ALIASES['redis'].startswith('config.')\n"
    )
    unregistered = {"at": "config.own:register", "old": "TRANSPORT_ALIASES['redis'] = 'config.own:Own'", "new": "pass"}
    assert verdicts_on(toy, {**unregistered, "tests": ["test_guard.py"]}) == [("caught", "test_guard.py::test_it_is_registered")]


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tests.mutants", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_list_shows_the_rule_of_each_mutant() -> None:
    listed = run_command("--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == len(MUTANTS)
    assert MUTANTS[0].rule in listed.stdout


def test_help_explains_the_results() -> None:
    told = run_command("--help").stdout
    assert all(word in told for word in ("caught", "missed", "broken", "--only"))


def test_an_unknown_name_is_an_error() -> None:
    done = run_command("--only", "no-such-mutant")
    assert (done.returncode, done.stdout.strip()) == (2, "No mutant is named no-such-mutant. --list prints the names.")


def test_git_lists_the_files_of_the_copied_checkout() -> None:
    with copied_tree(ROOT) as copy:
        listed = subprocess.run(["git", "ls-files", "manage.py", "tests/mutants"], cwd=copy, capture_output=True, text=True, check=True)
    assert {"manage.py", "tests/mutants/running.py"} <= set(listed.stdout.split())
