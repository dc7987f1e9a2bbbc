"""Reads facts from the source without running it: the arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings

APPS = ("foundation", "identity", "authapi", "events", "provisioning", "config")


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of a function or class of this name, with its module."""
    for module, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield module, node


def class_values(name: str) -> Iterator[Any]:
    """Yield the values that classes give to an attribute of this name."""
    for module, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for line in node.body:
                    if isinstance(line, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in line.targets):
                        yield value_of(line.value, module)


def argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    """Return an argument of a call, positional or by name."""
    if len(call.args) > position:
        return call.args[position]
    return next((each.value for each in call.keywords if each.arg == keyword), None)


def value_of(node: ast.expr | None, module: str) -> Any:
    """Return a constant, or the value of a name of the module; None for a value that is known only at run time."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return getattr(import_module(module), node.id, None)
    return None


@lru_cache(maxsize=1)
def _trees() -> tuple[tuple[str, ast.Module], ...]:
    root = Path(settings.BASE_DIR)
    files = (file for app in APPS for file in sorted((root / app).rglob("*.py")) if "migrations" not in file.parts)
    return tuple((".".join(file.relative_to(root).with_suffix("").parts), ast.parse(file.read_text())) for file in files)
