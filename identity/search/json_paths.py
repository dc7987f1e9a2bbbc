"""Predicates on a JSON column in the SQL/JSON path language of PostgreSQL. Pure.

In lax mode a path searches inside arrays, so `app_metadata.roles:admin` finds one role among many. Each literal is written as a JSON
string, so no character of a value can end the literal early. The whole path is one bound parameter of the statement.
"""

from __future__ import annotations

import json
import re

from identity.search.queries import Between

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,18})(?:\.\d{1,18})?", re.ASCII)


def path_to(keys: tuple[str, ...]) -> str:
    """Return the path to the value under these keys."""
    return "$" + "".join(f".{_quoted(key)}" for key in keys)


def equal_to(keys: tuple[str, ...], text: str) -> str:
    """Return the predicate that the value is this text, or the number or boolean with this spelling."""
    values = [_quoted(text)]
    if _NUMBER.fullmatch(text):
        values.append(text)
    if text in ("true", "false"):
        values.append(text)
    return " || ".join(f"{path_to(keys)} == {value}" for value in values)


def present(keys: tuple[str, ...]) -> str:
    """Return the predicate that a text, number or boolean is under these keys, at any depth. Empty arrays and objects do not count."""
    return f'exists({path_to(keys)}.** ? (@ != null && @.type() != "object" && @.type() != "array"))'


def within(keys: tuple[str, ...], between: Between) -> str:
    """Return the predicate that the value is in the range. Compares numbers if all bounds are numbers, otherwise texts."""
    ends = [end for end in (between.low, between.high) if end is not None]
    are_numbers = all(_NUMBER.fullmatch(end) for end in ends)
    asked = []
    if between.low is not None:
        asked.append(f"@ {'>=' if between.includes_low else '>'} {between.low if are_numbers else _quoted(between.low)}")
    if between.high is not None:
        asked.append(f"@ {'<=' if between.includes_high else '<'} {between.high if are_numbers else _quoted(between.high)}")
    return f"exists({path_to(keys)} ? ({' && '.join(asked)}))"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)
