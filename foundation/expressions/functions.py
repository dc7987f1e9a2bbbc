"""The functions of mapping expressions: our own functions, and the functions of JMESPath that cannot enlarge a value. Pure.

Our own functions return null for null, so an attribute that a user lacks stays absent. Only `contains`, `coalesce` and `default` can return
another value for null.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from jmespath import functions
from jmespath.functions import signature

LONGEST_TEXT = 32 * 1024
MOST_ITEMS = 10_000
_TOO_LONG = f"a text would have more than {LONGEST_TEXT} characters"

_TEXT = {"types": ["string", "null"]}
_ANY: dict[str, list[str]] = {"types": []}
_WORDS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
# JMESPath's own functions. The excluded functions make texts of any size from nested values, or evaluate further expressions.
BUILT_IN = ("abs", "ceil", "ends_with", "floor", "keys", "length", "not_null", "reverse", "sort", "starts_with", "type", "values")


class FunctionFailed(ValueError):
    """A function got a value of a wrong type, or its result would be too large."""


class MappingFunctions(functions.Functions):  # type: ignore[misc]  # jmespath has no types
    """The functions of mapping expressions. Expressions find a function `x` as the method `_func_x`."""

    @signature(_TEXT)
    def _func_lower(self, text: str | None) -> str | None:
        return None if text is None else text.lower()

    @signature(_TEXT)
    def _func_upper(self, text: str | None) -> str | None:
        return None if text is None else text.upper()

    @signature(_TEXT)
    def _func_trim(self, text: str | None) -> str | None:
        return None if text is None else text.strip()

    @signature({"types": ["string", "number", "null"], "variadic": True})
    def _func_concat(self, *parts: Any) -> str | None:
        """Join texts and numbers; null if one of the arguments is null."""
        if any(part is None for part in parts):
            return None
        return _joined("", [_text(part) for part in parts])

    @signature(_TEXT, {"types": ["string"]}, {"types": ["string"]})
    def _func_replace(self, text: str | None, old: str, new: str) -> str | None:
        if text is None or not old:
            return text
        if len(text) + text.count(old) * (len(new) - len(old)) > LONGEST_TEXT:
            raise FunctionFailed("replace() would make too long a text")
        return text.replace(old, new)

    @signature(_TEXT, {"types": ["string"]})
    def _func_split(self, text: str | None, separator: str) -> list[str] | None:
        if text is None:
            return None
        if not separator:
            raise FunctionFailed("split() needs a separator")
        return text.split(separator, MOST_ITEMS)

    @signature({"types": ["string"]}, {"types": ["array", "null"]})
    def _func_join(self, separator: str, parts: list[Any] | None) -> str | None:
        """Join the texts and numbers of a list; null items are skipped."""
        if parts is None:
            return None
        return _joined(separator, [_text(part) for part in parts if part is not None])

    @signature({"types": [], "variadic": True})
    def _func_coalesce(self, *values: Any) -> Any:
        """Return the first value that is neither null nor an empty text."""
        return next((value for value in values if value not in (None, "")), None)

    @signature(_ANY, _ANY)
    def _func_default(self, value: Any, otherwise: Any) -> Any:
        return otherwise if value is None or value == "" else value

    @signature(_TEXT, {"types": ["number"]}, {"types": ["number"]})
    def _func_substring(self, text: str | None, start: float, length: float) -> str | None:
        if text is None:
            return None
        first = max(int(start), 0)
        return text[first : first + max(int(length), 0)]

    @signature({"types": ["boolean", "string", "number", "null"]})
    def _func_to_bool(self, value: Any) -> bool | None:
        """Convert `true`, `yes`, `1` and their opposites to a boolean, in upper or lower case; null for any other value."""
        return value if isinstance(value, bool) else _WORDS.get(_text(value).strip().lower()) if value is not None else None

    @signature({"types": ["boolean", "string", "number", "null"]})
    def _func_to_string(self, value: Any) -> str | None:
        if isinstance(value, bool):
            return "true" if value else "false"
        return None if value is None else _text(value)

    @signature({"types": ["string", "number", "null"]})
    def _func_to_number(self, value: Any) -> float | int | None:
        try:
            number = float(value)
        except (TypeError, ValueError):
            return None
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() else number

    @signature(_TEXT, {"types": ["string"]})
    def _func_format_date(self, text: str | None, form: str) -> str | None:
        """Convert an RFC 3339 time or a date to UTC and format the result with `form`, such as `%Y-%m-%d`. Return null for any other
        value."""
        try:
            moment = datetime.fromisoformat(text) if text is not None else None
        except ValueError:
            return None
        if moment is None:
            return None
        return _bounded((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).strftime(form[:64]))

    @signature({"types": ["array", "string", "null"]}, {"types": ["boolean", "string", "number", "null"]})
    def _func_contains(self, subject: Any, search: Any) -> bool:
        if isinstance(subject, str):
            return isinstance(search, str) and search in subject
        return any(type(item) is type(search) and item == search for item in subject or ())


NAMES = frozenset(name for name in MappingFunctions.FUNCTION_TABLE if name in BUILT_IN or f"_func_{name}" in vars(MappingFunctions))


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FunctionFailed("only texts and numbers can be joined")
    return str(value)


def _joined(separator: str, parts: list[str]) -> str:
    """Join texts. Checks the lengths first: ten thousand long separators could exhaust the memory of the process."""
    if len(separator) * max(len(parts) - 1, 0) + sum(map(len, parts)) > LONGEST_TEXT:
        raise FunctionFailed(_TOO_LONG)
    return separator.join(parts)


def _bounded(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise FunctionFailed(_TOO_LONG)
    return text
