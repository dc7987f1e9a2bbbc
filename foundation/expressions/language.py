"""The expressions that tenants write: JMESPath, bounded in size, depth and work. Pure.

They run in a worker for every event and in a login for every profile. So this module bounds their cost: every expression ends soon
for any document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from jmespath.visitor import Options, TreeInterpreter

from foundation.expressions.functions import MOST_ITEMS, NAMES, FunctionFailed, MappingFunctions

MAX_CHARACTERS = 512
_MAX_DEPTH = 32
_MAX_STEPS = 20_000
# A function reads its whole argument. So this many items of a list, or characters of a text, count as one more step.
_ITEMS_PER_STEP = 100
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

Expression = Callable[[Mapping[str, Any]], Any]
_Node = dict[str, Any]


class ExpressionRefused(ValueError):
    """The expression is invalid."""


class ExpressionFailed(ValueError):
    """The expression has no value for this user."""


@lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Return a function of the user's document; raise `ExpressionRefused` with the reason.

    A missing path yields None. An expression that is only `!path` yields False if the value is true, and True for any other value, so
    that `!blocked` is True for a user without this field. Elsewhere, `!` has its meaning in JMESPath. The returned function raises
    `ExpressionFailed` when a function in the expression gets a value of a wrong type, or when the value would become too large.
    """
    expression = text.strip()
    if not expression or len(expression) > MAX_CHARACTERS:
        raise ExpressionRefused(f"An expression has 1 to {MAX_CHARACTERS} characters.")
    node = _parsed(expression)
    _check(node)
    names = _names_of(node)
    if names is not None:
        # Fast path: nearly every expression is a plain path.
        return lambda document: _value_at(document, names)
    # `!path` is parsed here, because JMESPath reads `!a.b` as the member b of `!a`.
    negated = _names_of(_parsed(expression[1:])) if expression.startswith("!") and expression[1:].strip() else None
    if negated is not None:
        return lambda document: _value_at(document, negated) is not True
    return lambda document: _evaluated(node, document)


def is_constant(text: str) -> bool:
    """Tell whether a valid expression is a literal, whose value is the same for every user."""
    return bool(_parsed(text.strip())["type"] == "literal")


class _BoundedInterpreter(TreeInterpreter):  # type: ignore[misc]  # jmespath has no types
    """Counts the steps of an evaluation. Projections and flattening can double a list at every step, and a function can sort the list each
    time.
    """

    def __init__(self) -> None:
        super().__init__(Options(custom_functions=MappingFunctions()))
        self._left = _MAX_STEPS

    def visit(self, node: _Node, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        value = super().visit(node, *args, **kwargs)
        if isinstance(value, list | str):
            self._left -= len(value) // _ITEMS_PER_STEP
        if self._left < 0 or (isinstance(value, list) and len(value) > MOST_ITEMS):
            raise FunctionFailed("the value is too large")
        return value

    def visit_comparator(self, node: _Node, value: Any) -> Any:
        """Compare texts, numbers, true, false and null. Refuse lists and objects: they can share parts, so comparing them can take
        exponential time."""
        if any(isinstance(self.visit(child, value), list | dict) for child in node["children"]):
            raise FunctionFailed("lists and objects cannot be compared")
        return super().visit_comparator(node, value)


def _evaluated(node: _Node, document: Mapping[str, Any]) -> Any:
    try:
        return _BoundedInterpreter().visit(node, document)
    except (JMESPathError, FunctionFailed) as error:
        # The library's messages quote the value, which is personal data.
        reason = str(error) if isinstance(error, FunctionFailed) else "a function got a value of another type"
        raise ExpressionFailed(reason) from None
    except RecursionError:
        raise ExpressionFailed("the value is nested too deeply") from None


def _parsed(expression: str) -> _Node:
    depth = 0
    for character in expression:
        depth += _BRACKETS.get(character, 0)
        if depth > _MAX_DEPTH:
            raise ExpressionRefused(f"An expression is nested at most {_MAX_DEPTH} deep.")
    try:
        parsed: _Node = Parser().parse(expression).parsed
    except JMESPathError as error:
        lines = str(error).splitlines()
        raise ExpressionRefused(f"{expression!r} is not understood: {lines[0] if lines else 'it is not JMESPath'}") from error
    except (RecursionError, ValueError) as error:
        raise ExpressionRefused(f"{expression!r} is not understood.") from error
    return parsed


def _check(root: _Node) -> None:
    for node, depth in _walk(root):
        if depth > _MAX_DEPTH:
            raise ExpressionRefused(f"An expression is nested at most {_MAX_DEPTH} deep.")
        if node["type"] == "function_expression" and node["value"] not in NAMES:
            raise ExpressionRefused(f"There is no function {node['value']}(). The functions are {', '.join(sorted(NAMES))}.")
        if node["type"] == "expref":
            raise ExpressionRefused("Arguments that begin with & (references to expressions) are not supported.")
        if node["type"] == "slice" and 0 in node["children"][2:]:
            raise ExpressionRefused("The step of a slice cannot be 0.")


def _walk(root: _Node) -> Iterator[tuple[_Node, int]]:
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in node.get("children", ()) if isinstance(child, dict)]


def _names_of(node: _Node) -> tuple[str, ...] | None:
    """Return the names of a plain path, None for anything else."""
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] != "subexpression":
        return None
    parts = [_names_of(child) for child in node["children"]]
    return None if None in parts else tuple(name for part in parts if part is not None for name in part)


def _value_at(document: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    value: Any = document
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
