"""The command that `make test-seeded-mutants` runs."""

from __future__ import annotations

import argparse
import random
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.planting import file_of
from tests.mutants.running import Runner, copied_tree, runner, servers, warm_up
from tests.mutants.seeded.areas import AREAS, Area
from tests.mutants.seeded.operators import Change, changes_of
from tests.mutants.seeded.scoring import Score, noted_tests, passes_afterwards, score_of

ROOT = Path(__file__).resolve().parents[3]
COUNT = 40
_SEEDS = 2**32
_EXPLANATION = """\
Draws random mutants of each area and plants each mutant in a copy of the checkout. For each mutant, the tests of the area that execute the
changed code run until one test fails.

  caught      a test failed, the module could not be imported, or the tests did not end
  equivalent  no test can notice the mutant; tests/mutants/seeded/survivors.py has the reason
  missed      every test passed: write the missing test, or add the mutant to the survivors with a reason

The same seed draws the same mutants from the same source. The exit status is 1 if a mutant is missed, and 2 if the tests already fail
without a mutant.
"""


def drawn(area: Area, root: Path, *, seed: int, count: int) -> tuple[list[tuple[str, Change]], int]:
    """Return `count` random mutants of the area with their modules, and how many mutants the area has in total."""
    possible = [(module, change) for module in area.modules for change in changes_of(file_of(root, module).read_text())]
    chosen = random.Random(f"{seed}:{area.name}").sample(possible, min(count, len(possible)))
    return sorted(chosen), len(possible)


def _score_of(area: Area, using: Runner, *, seed: int, count: int) -> Score | None:
    """Return the score of an area.

    Return None if a test fails without a mutant, that is, before the first mutant or after the last mutant.
    """
    using.keep_database(area.keeps_database)
    near = noted_tests([area], using)
    if near is None:
        return None
    mutants, possible = drawn(area, using.copy, seed=seed, count=count)
    score = score_of(area, using, near, mutants, possible=possible)
    return score if not area.keeps_database or passes_afterwards([area], using) else None


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
    parser.add_argument(
        "areas", nargs="*", choices=[*(area.name for area in AREAS), []], help="the areas, by default all; with make: ONLY='log lanes'"
    )
    parser.add_argument("--seed", type=int, help="the seed of an earlier run, to repeat this run; by default a new seed; with make: SEED=7")
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"the number of mutants of each area, by default {COUNT}; with make: COUNT={COUNT}"
    )
    parser.add_argument("--list", action="store_true", help="print the drawn mutants and run no tests")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
