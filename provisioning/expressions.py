"""The expressions of a mapping table. Pure.

The grammar is the part of JMESPath that the default table needs: `a.b`, `"odd name".b`, `'a constant'`, and `!a` for a
negation. `compile_expression` is the one place that knows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

MAX_CHARACTERS = 512
_MAX_DEPTH = 32

Expression = Callable[[Mapping[str, Any]], Any]

_NAME = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)|"([^"\\]+)"')
_CONSTANT = re.compile(r"'([^'\\]*)'")


class ExpressionRefused(ValueError):
    """The expression cannot be read."""


@lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Return a function of the user's document; raise `ExpressionRefused` with what is wrong.

    A path that leads nowhere yields None. `!path` is False for exactly true and True for everything else: a user
    without `blocked` is active.
    """
    expression = text.strip()
    if not expression or len(expression) > MAX_CHARACTERS:
        raise ExpressionRefused(f"An expression has 1 to {MAX_CHARACTERS} characters.")
    if constant := _CONSTANT.fullmatch(expression):
        value = constant.group(1)
        return lambda document: value
    if expression.startswith("!"):
        names = _path(expression[1:].strip())
        return lambda document: _value_at(document, names) is not True
    names = _path(expression)
    return lambda document: _value_at(document, names)


def _path(text: str) -> tuple[str, ...]:
    names: list[str] = []
    position = 0
    while match := _NAME.match(text, position):
        names.append(match.group(1) or match.group(2))
        position = match.end()
        if position == len(text):
            break
        if text[position] != ".":
            raise ExpressionRefused(f"Character {position + 1} of {text!r} is not understood: names are separated by dots.")
        position += 1
    if not names or position != len(text) or text.endswith("."):
        raise ExpressionRefused(f"{text!r} is not understood: a path such as user_metadata.phone is expected.")
    if len(names) > _MAX_DEPTH:
        raise ExpressionRefused(f"A path has at most {_MAX_DEPTH} names.")
    return tuple(names)


def _value_at(document: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    value: Any = document
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
