"""The command that `make test-mutants` runs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.mutants.catalog import MUTANTS
from tests.mutants.children import Verdict
from tests.mutants.mutant import Mutant
from tests.mutants.workers import Workers, workers

ROOT = Path(__file__).resolve().parents[2]
# Number of test files that a worker runs together in the first run, without a mutant. A larger number needs less time for the starts of
# pytest. A smaller number distributes the files more evenly among the workers.
_PART = 8
_EXPLANATION = """\
A mutant is a fault that breaks one rule of the product, such as a missing lock. The command plants the fault in a copy of the checkout
and runs the tests that the entry of the mutant names, until the first test fails.

  caught   a test failed: the rule is tested
  missed   every test passed: write the missing test, or improve a mutant that breaks nothing
  broken   the entry names code that no longer exists, the module cannot be imported, or the tests do not end: repair the entry

Mutants are listed in tests/mutants/catalog/, one file for each area. CONTRIBUTING.md ("Add a mutant") explains an entry.
The exit status is 1 if a mutant is missed or broken, and 2 if the tests already fail without a mutant.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the selected mutants, print the results, and return the exit status."""
    options = _parser().parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if any(fnmatchcase(mutant.name, pattern) for pattern in options.only.split())]
    if not chosen:
        print(f"No mutant is named {options.only}. --list prints the names.")
        return 2
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:52} {mutant.rule}")
        return 0
    begin = time.monotonic()
    with workers(ROOT, max(1, min(options.jobs, len(chosen)))) as using:
        if not options.skip_baseline and not _is_baseline_passed(using, chosen):
            return 2
        counts = _judge_all(using, chosen, is_verbose=len(chosen) == 1)
    print(", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict) + f"; {time.monotonic() - begin:.0f} s in all")
    return 0 if counts[Verdict.CAUGHT] == len(chosen) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make test-mutants", description=_EXPLANATION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="*", metavar="NAME", help="run the mutants with these names or patterns: ONLY='events-* identity-audit-*'"
    )
    parser.add_argument("--list", action="store_true", help="print each mutant with the rule that it breaks, and run nothing")
    parser.add_argument(
        "--skip-baseline",
        action="store_true",
        help="skip the first run, which has no mutant; a mutant then counts as caught even if its test also fails without it",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of mutants to try at once; by default one per core",
    )
    return parser


def _is_baseline_passed(using: Workers, chosen: Sequence[Mutant]) -> bool:
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    print(f"without a mutant: {len(tests)} files or tests", flush=True)
    begin = time.monotonic()
    parts = [tuple(tests[place : place + _PART]) for place in range(0, len(tests), _PART)]
    failed = [judgement for _, judgement in using.judgements(parts) if judgement.verdict is not Verdict.MISSED]
    for judgement in failed:
        print(f"without a mutant: failed {judgement.detail}\n{judgement.output}")
    print(f"without a mutant: {'failed' if failed else 'passed'}, {time.monotonic() - begin:.1f} s", flush=True)
    return not failed


def _judge_all(using: Workers, chosen: Sequence[Mutant], *, is_verbose: bool) -> Counter[Verdict]:
    counts: Counter[Verdict] = Counter()
    for mutant, judgement in using.judgements(chosen):
        counts[judgement.verdict] += 1
        number = counts.total()
        print(
            f"{number:3}/{len(chosen)} {judgement.verdict.value:7} {mutant.name:52} {judgement.seconds:5.1f} s  {judgement.detail}",
            flush=True,
        )
        if judgement.verdict is not Verdict.CAUGHT:
            print(f"        rule: {mutant.rule}\n        at: {mutant.at}", flush=True)
        if is_verbose or judgement.verdict is Verdict.BROKEN:
            print(judgement.output, flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
