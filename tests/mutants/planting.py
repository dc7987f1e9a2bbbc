"""Plants a mutant into a source tree and removes the mutant again. Imports no module of the product."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from tests.mutants.mutant import Mutant

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Symbol = _Definition | ast.Assign | ast.AnnAssign


class StaleMutant(Exception):
    """The mutant cannot be applied any longer, because the source has changed."""


@contextmanager
def planted(root: Path, mutant: Mutant) -> Iterator[None]:
    """Write the mutant into the tree at `root`, and restore the file at the end of the block.

    Raise `StaleMutant` before the first write if the mutant cannot be applied.
    """
    file = file_of(root, mutant.module)
    with replaced(file, mutated(file.read_text(), mutant)):
        yield


@contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """Replace the text of a file, and restore the file at the end of the block."""
    original = file.read_text()
    _write(file, text)
    try:
        yield
    finally:
        _write(file, original)


def file_of(root: Path, module: str) -> Path:
    """Return the source file of a module or package. Raise `StaleMutant` if the file does not exist."""
    path = root.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return file
    raise StaleMutant(f"{module} does not exist")


def mutated(source: str, mutant: Mutant) -> str:
    """Return the source with the fault.

    Raise `StaleMutant` if the symbol or the fragment does not occur exactly once, or if the result equals the source, or if it is not valid
    Python.
    """
    node = _symbol_in(source, mutant)
    decorators = node.decorator_list if isinstance(node, _Definition) else []
    first, last = min(part.lineno for part in (node, *decorators)) - 1, node.end_lineno or node.lineno
    lines = source.splitlines(keepends=True)
    body = "".join(lines[first:last])
    if (count := body.count(mutant.old)) != 1:
        raise StaleMutant(f"the fragment occurs {count} times in {mutant.at}")
    changed = "".join(lines[:first]) + body.replace(mutant.old, mutant.new) + "".join(lines[last:])
    try:
        if ast.dump(_symbol_in(changed, mutant)) == ast.dump(node):
            raise StaleMutant("the replacement changes nothing")
    except SyntaxError as error:
        raise StaleMutant(f"the replacement is no valid Python: {error}") from error
    return changed


def _symbol_in(source: str, mutant: Mutant) -> _Symbol:
    found = _symbols_of(source).get(mutant.symbol, [])
    if len(found) != 1:
        raise StaleMutant(f"{mutant.module} defines {mutant.symbol} {len(found)} times")
    return found[0]


@lru_cache(maxsize=256)
def _symbols_of(source: str) -> dict[str, list[_Symbol]]:
    symbols: dict[str, list[_Symbol]] = {}
    for name, node in _definitions(ast.parse(source), ""):
        symbols.setdefault(name, []).append(node)
    return symbols


def _definitions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, _Symbol]]:
    """Yield functions and classes with their qualified names, and the constants of modules and classes, such as SQL statements."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, _Definition):
            yield prefix + node.name, node
            yield from _definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if isinstance(parent, ast.Module | ast.ClassDef):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from ((prefix + target.id, node) for target in targets if isinstance(target, ast.Name))
        else:
            yield from _definitions(node, prefix)


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    # Delete the stored bytecode. Python would use this bytecode if the size and the time (in whole seconds) of the source file are
    # unchanged. Both can be unchanged after a fault was planted or removed.
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
