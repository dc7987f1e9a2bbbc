"""The command of `make test-seeded-mutants`."""

from __future__ import annotations

import argparse
import json
import random
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.planting import file_of
from tests.mutants.running import Runner, Verdict, copied_tree, runner, servers, warm_up
from tests.mutants.seeded import call_notes
from tests.mutants.seeded.areas import AREAS, Area
from tests.mutants.seeded.operators import Change, changes_of
from tests.mutants.seeded.survivors import reason_of

ROOT = Path(__file__).resolve().parents[3]
COUNT = 40
_SEEDS = 2**32
# A mutant whose tests take this many times as long as without it waits for ever.
_TIMES_THE_BASELINE = 5
_SHORTEST_LIMIT_SECONDS = 60.0
_EXPLANATION = """\
Draws mutants of each area from a seed and plants each in a copy of the checkout. The tests of the area that call the changed function run
until the first failure.

  caught      a test failed, the module could not be imported, or the tests did not end
  equivalent  no test can notice the mutant; tests/mutants/seeded/survivors.py has the reason
  missed      every test passed: write the missing test, or add the mutant to the survivors with a reason

The same seed draws the same mutants from the same source. The exit status is 1 if a mutant is missed, and 2 if the tests already fail
without a mutant.
"""


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


def drawn(area: Area, root: Path, *, seed: int, count: int) -> tuple[list[tuple[str, Change]], int]:
    """Return `count` mutants of the area with their modules, and the number of possible ones."""
    possible = [(module, change) for module in area.modules for change in changes_of(file_of(root, module).read_text())]
    chosen = random.Random(f"{seed}:{area.name}").sample(possible, min(count, len(possible)))
    return sorted(chosen), len(possible)


def main(arguments: Sequence[str]) -> int:
    """Judge the drawn mutants of the chosen areas and return the exit status."""
    options = _parser().parse_args(arguments)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    chosen = [area for area in AREAS if not options.areas or area.name in options.areas]
    print(f"seed {seed}, {options.count} mutants of each area", flush=True)
    if options.list:
        for area in chosen:
            for module, change in drawn(area, ROOT, seed=seed, count=options.count)[0]:
                print(f"{area.name:12} {module}:{change}")
        return 0
    with copied_tree(ROOT) as copy, servers():
        warm_up()
        with runner(copy) as using:
            scores = [_score_of(area, using, seed=seed, count=options.count) for area in chosen]
    print(f"\nseed {seed}", *scores, sep="\n")
    if None in scores:
        return 2
    return 1 if any(score is not None and score.missed for score in scores) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make test-seeded-mutants", description=_EXPLANATION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("areas", nargs="*", choices=[*(area.name for area in AREAS), []], help="by default all areas: ONLY='log lanes'")
    parser.add_argument("--seed", type=int, help="repeat a run: SEED=7; by default a new seed")
    parser.add_argument("--count", type=int, default=COUNT, help=f"the number of mutants of each area: COUNT={COUNT}")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    return parser


@dataclass(frozen=True)
class Calls:
    """The functions that each test calls, fast tests first."""

    of_tests: dict[str, frozenset[str]]

    @classmethod
    def noted(cls, copy: Path) -> Calls:
        """Read the notes of the run without a mutant."""
        notes = json.loads((copy / call_notes.NOTED).read_text())
        return cls({test: frozenset(called) for test, (_, called) in sorted(notes.items(), key=lambda item: item[1][0])})

    def tests_of(self, module: str, change: Change, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tests that call the changed function, or all: a change may be outside of functions, or run in another process."""
        function = f"{_path_of(module)}:{change.function}"
        found = tuple(test for test, called in self.of_tests.items() if any(name == function for name in called))
        return found if change.function and found else otherwise


def _path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _score_of(area: Area, using: Runner, *, seed: int, count: int) -> Score | None:
    """Judge the mutants of one area; None if its tests fail without a mutant."""
    begin = time.monotonic()
    (using.copy / call_notes.ASKED).write_text(json.dumps([_path_of(module) for module in area.modules]))
    baseline = using.run(["-p", "tests.mutants.seeded.call_notes", *area.tests])
    print(f"{area.name}: without a mutant {baseline.seconds:.1f} s", flush=True)
    if baseline.verdict is not Verdict.MISSED:
        print(f"{area.name}: failed without a mutant: {baseline.detail}\n{baseline.output}", flush=True)
        return None
    calls = Calls.noted(using.copy)
    limit = max(_SHORTEST_LIMIT_SECONDS, baseline.seconds * _TIMES_THE_BASELINE)
    mutants, possible = drawn(area, using.copy, seed=seed, count=count)
    score = Score(area, possible)
    for module, change in mutants:
        _judge_into(score, using, module, change, tests=calls.tests_of(module, change, area.tests), limit=limit)
    score.seconds = time.monotonic() - begin
    print(score, flush=True)
    return score


def _judge_into(score: Score, using: Runner, module: str, change: Change, *, tests: tuple[str, ...], limit: float) -> None:
    reason = reason_of(module, change)
    if reason is not None:
        score.equivalent += 1
        _tell("equivalent", module, change, reason)
        return
    file = file_of(using.copy, module)
    judgement = using.judge_text(file, change.applied(file.read_text()), tests, longest=limit)
    if judgement.verdict is Verdict.MISSED:
        score.missed.append(f"{module}:{change}")
        _tell("missed", module, change, f"{judgement.seconds:.1f} s, {len(tests)} tests or files")
    else:
        score.caught += 1
        _tell("caught", module, change, f"{judgement.seconds:.1f} s {judgement.detail}")


def _tell(verdict: str, module: str, change: Change, detail: str) -> None:
    print(f"{verdict:10} {module}:{change}  ({detail})", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
