"""The table of the operations of the upstream interface contains exactly the operations of the installed client libraries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.launcher.peers import PLACE
from config.upstream.table import Kind, table

pytestmark = pytest.mark.peer

KNOWN = {(entry.method, entry.path): entry.name for entry in table() if entry.kind is not Kind.ADDITION}
# Operations that only the Node library has, because the installed Node library is newer than the installed Python library.
ONLY_NODE = {place for place, name in KNOWN.items() if name.startswith("organizations.organization_template.")}
_NODE_CALL = re.compile(r"(?:`([^`\n]*)`|\"([^\"\n]*)\")\),?\s*method: \"(\w+)\"")


def python_operations() -> dict[tuple[str, str], str]:
    """Return the HTTP method and path of every request in the source of the Python library, with the name of the library's method."""
    root = next((PLACE / "python" / "lib").glob("python3*/site-packages/auth0/management"), None)
    if root is None:
        pytest.skip("the Python client is not installed: make test-peers")
    found = {}
    for file in sorted(root.rglob("raw_client.py")):
        place = ".".join(file.parent.relative_to(root).parts)
        for function in _sync_methods(ast.parse(file.read_text())):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("request", "stream"):
                    method = next((word.value for word in call.keywords if word.arg == "method"), None)
                    if call.args and isinstance(method, ast.Constant):
                        found[str(method.value), _path_of(call.args[0])] = f"{place}.{function.name}"
    return found


def _sync_methods(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("Async"):
            yield from (member for member in node.body if isinstance(member, ast.FunctionDef))


def _path_of(expression: ast.expr) -> str:
    if isinstance(expression, ast.Constant):
        return str(expression.value)
    assert isinstance(expression, ast.JoinedStr), ast.dump(expression)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in expression.values)


def node_operations(root: Path) -> set[tuple[str, str]]:
    """Return the HTTP method and path of every request in the source of the Node library."""
    found = set()
    for file in root.rglob("Client.js"):
        for template, plain, method in _NODE_CALL.findall(file.read_text()):
            found.add((method, re.sub(r"\$\{[^}]*\}", "{}", template or plain)))
    return found


def test_the_table_names_every_operation_of_the_python_client_by_the_same_name() -> None:
    assert {place: name for place, name in KNOWN.items() if place not in ONLY_NODE} == python_operations()


def test_the_table_names_every_operation_of_the_node_client() -> None:
    root = PLACE / "node_modules" / "auth0" / "dist" / "cjs" / "management" / "api" / "resources"
    if not root.exists():
        pytest.skip("the Node client is not installed: make test-peers")
    found = node_operations(root)
    assert len(found) > 400
    assert found - KNOWN.keys() == set()
    assert found >= ONLY_NODE
