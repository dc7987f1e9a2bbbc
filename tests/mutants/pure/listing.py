"""Lists the mutants of a module as JSON lines. Runs in the environment of `requirements/mutation.lock`, as a program.

A line has the start and the end of the changed piece, its replacement, and the name of the operator.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray import plugins  # type: ignore[import-not-found]
from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-not-found]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found]

# These operators are not used, because they need arguments.
_LEFT_OUT = ("VariableReplacer", "VariableInserter")


def changes(source: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield every mutant of the text."""
    for name in sorted(plugins.operator_names()):
        if name.rpartition("/")[2] in _LEFT_OUT:
            continue
        operator = plugins.get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(get_ast(source)))
        for occurrence in range(count):
            try:
                changed = mutate_code(source, operator, occurrence)
            except AttributeError:
                # Skip a handler of an exception with a dotted name, such as `binascii.Error`: cosmic-ray 8.7 cannot replace the name.
                continue
            if changed is not None and changed != source:
                yield (*_piece(source, changed), name.rpartition("/")[2])


def _piece(source: str, changed: str) -> tuple[int, int, str]:
    begin = _equal(source, changed)
    most = min(len(source), len(changed)) - begin
    after = min(_equal(source[::-1], changed[::-1]), most)
    return begin, len(source) - after, changed[begin : len(changed) - after]


def _equal(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning of both texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (first, second) in pairs if first != second), min(len(one), len(other)))


if __name__ == "__main__":
    for change in changes(Path(sys.argv[1]).read_text()):
        sys.stdout.write(json.dumps(change) + "\n")
