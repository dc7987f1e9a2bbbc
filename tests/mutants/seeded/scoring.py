"""Judges many mutants of an area. Each mutant is tried with the tests that execute the changed statement, fast tests first."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.mutants.children import Judgement, Verdict
from tests.mutants.collected import CollectedTests, collected
from tests.mutants.grafting import graft_of
from tests.mutants.planting import file_of, replaced
from tests.mutants.running import Runner, load_the_product
from tests.mutants.seeded import call_notes
from tests.mutants.seeded.areas import Area
from tests.mutants.seeded.near_tests import NearTests
from tests.mutants.seeded.operators import Change
from tests.mutants.seeded.survivors import reason_of

# If the tests take this many times as long with a mutant as without a mutant, the run is stopped, and the mutant counts as caught.
_TIMES_THE_BASELINE = 5
_SHORTEST_LIMIT_SECONDS = 60.0
Drawn = Sequence[tuple[str, Change]]


@dataclass
class Score:
    """The numbers of caught, equivalent and missed mutants of one area."""

    area: Area
    possible: int
    caught: int = 0
    equivalent: int = 0
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        drawn = self.caught + self.equivalent + len(self.missed)
        return (
            f"{self.area.name:12} {drawn:3} of {self.possible:4}: {self.caught:3} caught, {self.equivalent:2} equivalent,"
            f" {len(self.missed):2} missed, {self.seconds:5.0f} s"
        )


def _path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def noted_tests(areas: Sequence[Area], using: Runner) -> NearTests | None:
    """Run the tests of the areas without a mutant, and note what each test executes. Return None if a test fails."""
    modules = [module for area in areas for module in area.modules]
    (using.copy / call_notes.ASKED).write_text(json.dumps([_path_of(module) for module in modules]))
    passed = _without_a_mutant(areas, using, "before all mutants", "-p", "tests.mutants.seeded.call_notes")
    return NearTests.noted(using.copy, in_process=all(area.in_process for area in areas)) if passed else None


def passes_afterwards(areas: Sequence[Area], using: Runner) -> bool:
    """Tell whether the tests pass without a mutant on the database on which the mutants ran.

    If a test fails, a mutant has left rows in this database. These rows may also have made the tests of later mutants fail, and these
    mutants were then counted as caught.
    """
    return _without_a_mutant(areas, using, "after all mutants")


def _without_a_mutant(areas: Sequence[Area], using: Runner, moment: str, *options: str) -> bool:
    judgement = using.run([*options, *_in_order_of_files({test for area in areas for test in area.tests})])
    is_passed = judgement.verdict is Verdict.MISSED
    print(f"without a mutant, {moment}: {'passed' if is_passed else 'failed ' + judgement.detail}, {judgement.seconds:.1f} s", flush=True)
    if not is_passed:
        print(judgement.output, flush=True)
    return is_passed


def score_of(area: Area, using: Runner, near: NearTests, mutants: Drawn, *, possible: int) -> Score:
    """Judge the mutants of one area, each given with its module, and return the score."""
    begin = time.monotonic()
    score = Score(area, possible)
    tests = near.in_files(area.tests)
    limit = max(_SHORTEST_LIMIT_SECONDS, tests.seconds * _TIMES_THE_BASELINE)
    with collected(using.copy, _in_order_of_files(area.tests), load_the_product) as ready:
        for module, change in mutants:
            _judge_into(score, _Judges(area, using, ready, tests, limit), module, change)
    score.seconds = time.monotonic() - begin
    print(score, flush=True)
    return score


def _in_order_of_files(tests: Iterable[str]) -> list[str]:
    """Sort the tests by file. If pytest leaves a folder and returns to it, it does not find the fixtures of the folder."""
    return sorted(tests, key=lambda test: test.partition("::")[0])


@dataclass(frozen=True)
class _Judges:
    """Judges each mutant in a child of the process that has collected the tests, or with the runner if the mutant requires a new import."""

    area: Area
    using: Runner
    ready: CollectedTests
    near: NearTests
    limit: float

    def judge(self, module: str, change: Change) -> tuple[Judgement, int]:
        """Return the judgement of one mutant, and the number of tests that were chosen for it."""
        file = file_of(self.using.copy, module)
        original = file.read_text()
        tests = self.near.of(_path_of(module), original, change, most_seconds=self.area.most_seconds)
        if not tests:
            return Judgement(Verdict.MISSED, "", 0.0, ""), 0
        changed = change.applied(original)
        graft = graft_of(file, original, changed)
        if graft is not None:
            # Replace the text of the file, too: tests may start other processes, which import the file.
            with replaced(file, changed):
                judgement = self.ready.judge(tests, graft, self.limit)
            if judgement is not None:
                return judgement, len(tests)
        return self.using.judge_text(file, changed, _in_order_of_files(tests), longest=self.limit), len(tests)


def _judge_into(score: Score, judges: _Judges, module: str, change: Change) -> None:
    reason = reason_of(module, change)
    if reason is not None:
        score.equivalent += 1
        _tell("equivalent", module, change, reason)
        return
    judgement, count = judges.judge(module, change)
    if judgement.verdict is Verdict.MISSED:
        score.missed.append(f"{module}:{change}")
        _tell("missed", module, change, f"{judgement.seconds:.2f} s, {count} tests")
    else:
        score.caught += 1
        _tell("caught", module, change, f"{judgement.seconds:.2f} s {judgement.detail}")


def _tell(verdict: str, module: str, change: Change, detail: str) -> None:
    print(f"{verdict:10} {module}:{change}  ({detail})", flush=True)
