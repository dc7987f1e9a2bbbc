"""Judges many mutants of an area. Each mutant is tried with the tests that call the changed function, fast tests first."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.children import Judgement, Verdict
from tests.mutants.collected import CollectedTests, collected
from tests.mutants.grafting import graft_of
from tests.mutants.planting import file_of, replaced
from tests.mutants.running import Runner
from tests.mutants.seeded import call_notes
from tests.mutants.seeded.areas import Area
from tests.mutants.seeded.operators import Change
from tests.mutants.seeded.survivors import reason_of

# If the tests of a mutant take this many times as long as without the mutant, the mutant is assumed to wait forever.
_TIMES_THE_BASELINE = 5
_SHORTEST_LIMIT_SECONDS = 60.0
Drawn = Sequence[tuple[str, Change]]


@dataclass
class Score:
    """The result of one area."""

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


@dataclass(frozen=True)
class Calls:
    """The functions that each test calls, fast tests first, and those that the collection calls."""

    of_tests: dict[str, frozenset[str]]
    of_collection: frozenset[str]

    @classmethod
    def noted(cls, copy: Path) -> Calls:
        """Read the notes of the run without a mutant."""
        notes = json.loads((copy / call_notes.NOTED).read_text())
        _, collection = notes.pop(call_notes.COLLECTION)
        tests = {test: frozenset(called) for test, (_, called) in sorted(notes.items(), key=lambda item: item[1][0])}
        return cls(tests, frozenset(collection))

    def tests_of(self, module: str, change: Change, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tests that call the changed function. If there are none, return `otherwise`.

        A change may be outside of functions, or in code that runs in another process. A test may use a value that the collection has made
        with the function.
        """
        function = f"{_path_of(module)}:{change.function}"
        if function in self.of_collection:
            return otherwise
        found = tuple(test for test, called in self.of_tests.items() if any(name == function for name in called))
        return found if change.function and found else otherwise


def _path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def score_of(area: Area, using: Runner, mutants: Drawn, *, possible: int) -> Score | None:
    """Judge mutants of one area, each with its module. Return None if the tests of the area fail without a mutant."""
    begin = time.monotonic()
    (using.copy / call_notes.ASKED).write_text(json.dumps([_path_of(module) for module in area.modules]))
    baseline = using.run(["-p", "tests.mutants.seeded.call_notes", *area.tests])
    print(f"{area.name}: without a mutant {baseline.seconds:.1f} s", flush=True)
    if baseline.verdict is not Verdict.MISSED:
        print(f"{area.name}: failed without a mutant: {baseline.detail}\n{baseline.output}", flush=True)
        return None
    calls = Calls.noted(using.copy)
    limit = max(_SHORTEST_LIMIT_SECONDS, baseline.seconds * _TIMES_THE_BASELINE)
    score = Score(area, possible)
    with collected(using.copy, area.tests) as ready:
        for module, change in mutants:
            _judge_into(score, _Judges(using, ready, limit), module, change, tests=calls.tests_of(module, change, area.tests))
    score.seconds = time.monotonic() - begin
    print(score, flush=True)
    return score


@dataclass(frozen=True)
class _Judges:
    """The process that has collected the tests, and the runner for mutants that need a new import."""

    using: Runner
    ready: CollectedTests
    limit: float

    def judge(self, module: str, change: Change, tests: Sequence[str]) -> Judgement:
        file = file_of(self.using.copy, module)
        original = file.read_text()
        changed = change.applied(original)
        graft = graft_of(file, original, changed)
        if graft is not None:
            # Tests may start other processes, which import the changed text.
            with replaced(file, changed):
                judgement = self.ready.judge(tests, graft, self.limit)
            if judgement is not None:
                return judgement
        return self.using.judge_text(file, changed, tests, longest=self.limit)


def _judge_into(score: Score, judges: _Judges, module: str, change: Change, *, tests: tuple[str, ...]) -> None:
    reason = reason_of(module, change)
    if reason is not None:
        score.equivalent += 1
        _tell("equivalent", module, change, reason)
        return
    judgement = judges.judge(module, change, tests)
    if judgement.verdict is Verdict.MISSED:
        score.missed.append(f"{module}:{change}")
        _tell("missed", module, change, f"{judgement.seconds:.2f} s, {len(tests)} tests or files")
    else:
        score.caught += 1
        _tell("caught", module, change, f"{judgement.seconds:.2f} s {judgement.detail}")


def _tell(verdict: str, module: str, change: Change, detail: str) -> None:
    print(f"{verdict:10} {module}:{change}  ({detail})", flush=True)
