"""The command that `make test-mutation` runs."""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from config.launcher import tool_environment
from tests.mutants.planting import file_of
from tests.mutants.pure.modules import ROOT, files_near, pure_modules
from tests.mutants.running import Runner, copied_tree, runner, servers, warm_up
from tests.mutants.seeded.areas import Area
from tests.mutants.seeded.operators import Change, function_at
from tests.mutants.seeded.scoring import Drawn, Score, noted_tests, passes_afterwards, score_of

_ENVIRONMENT = ROOT / ".mutation"
_LISTING = Path(__file__).with_name("listing.py")
# A mutant is tried with its fastest tests, which together take at most about this number of seconds without a mutant.
_MOST_SECONDS = 10.0
_LOCK = ROOT / "requirements" / "mutation.lock"
_EXPLANATION = """\
Applies each change that the mutation operators of cosmic-ray can make to a pure module, and runs the tests of the module. A full run takes
hours; ONLY='foundation.*' selects modules. COUNT=20 chooses 20 random mutants of each module; SEED is the seed of the random numbers. The
results are called caught, equivalent and missed, as in `make test-seeded-mutants`.
"""


def main(arguments: Sequence[str]) -> int:
    """Judge the mutants of the chosen modules and return the exit status."""
    options = _parser().parse_args(arguments)
    if not tool_environment.install(_LOCK, _ENVIRONMENT):
        print("pip could not install the packages of requirements/mutation.lock", file=sys.stderr)
        return 2
    modules = [module for module in pure_modules() if any(fnmatchcase(module, pattern) for pattern in options.only.split())]
    with copied_tree(ROOT) as copy, servers():
        warm_up()
        with runner(copy) as using:
            scores = _scores_of([_area_of(module) for module in modules], using, seed=options.seed, count=options.count)
    if scores is None:
        return 2
    print(f"\nseed {options.seed}", *scores, sep="\n")
    missed = sum(len(score.missed) for score in scores)
    print(f"{len(scores)} modules: {sum(score.caught for score in scores)} caught, {missed} missed")
    return int(missed > 0)


def _area_of(module: str) -> Area:
    return Area(name=module, modules=(module,), tests=files_near(module), in_process=True, most_seconds=_MOST_SECONDS)


def _scores_of(areas: Sequence[Area], using: Runner, *, seed: int, count: int | None) -> list[Score] | None:
    """Return the scores of the areas that have mutants.

    Return None if a test fails without a mutant, either before the first mutant or after the last mutant.
    """
    using.keep_database(True)
    near = noted_tests(areas, using)
    if near is None:
        return None
    scores = []
    for area in areas:
        mutants, possible = _mutants_of(area.name, using.copy, seed=seed, count=count)
        if possible:
            scores.append(score_of(area, using, near, mutants, possible=possible))
    return scores if passes_afterwards(areas, using) else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make test-mutation", description=_EXPLANATION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="modules or patterns: ONLY='identity.search.*'")
    parser.add_argument("--count", type=int, help="the number of mutants of each module; by default all")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the random numbers")
    return parser


def _mutants_of(module: str, copy: Path, *, seed: int, count: int | None) -> tuple[Drawn, int]:
    """Return the chosen mutants of a module, and the number of all its mutants. Changes of annotations are not counted as mutants."""
    file = file_of(copy, module)
    source = file.read_text()
    command = [str(_ENVIRONMENT / "bin" / "python"), str(_LISTING), str(file)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    possible = [(module, change) for change in sorted({_change(source, *json.loads(line)) for line in listed}) if _matters(source, change)]
    if count is None or count >= len(possible):
        return possible, len(possible)
    return sorted(random.Random(f"{seed}:{module}").sample(possible, count)), len(possible)


def _change(source: str, begin: int, end: int, new: str, operator: str) -> Change:
    line = source.count("\n", 0, begin) + 1
    symbol = function_at(source, line)
    return Change(begin, end, source[begin:end], new, operator, symbol or "module", line, symbol)


def _matters(source: str, change: Change) -> bool:
    try:
        return _without_annotations(change.applied(source)) != _without_annotations(source)
    except SyntaxError:
        return False


def _without_annotations(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
