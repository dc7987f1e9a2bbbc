"""Parsers of query parameters: typed, bounded, and refused with 400 when invalid. Unknown parameters are ignored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from foundation.api.refusals import invalid_query
from foundation.json_values import text_problem

# With at most nine digits, every accepted number, and every page number times a page size, fits into a column of the database.
_MOST_DIGITS = 9
LARGEST_NUMBER = 10**_MOST_DIGITS - 1


def _single(query: QueryDict, name: str) -> str | None:
    """Return the parameter, or None when it is absent or empty; a repeated parameter is refused as ambiguous."""
    values = query.getlist(name)
    if len(values) > 1:
        raise invalid_query("Expected a single value", name)
    return values[0] or None if values else None


def text_of(query: QueryDict, name: str) -> str | None:
    """Return the parameter, or None when it is absent or empty."""
    value = _single(query, name)
    problem = text_problem(value) if value else None
    if problem:
        raise invalid_query(problem, name)
    return value


def texts_of(query: QueryDict, name: str) -> list[str]:
    """Return every value of a repeated parameter."""
    values = [value for value in query.getlist(name) if value]
    for value in values:
        problem = text_problem(value)
        if problem:
            raise invalid_query(problem, name)
    return values


def switch_of(query: QueryDict, name: str, *, default: bool) -> bool:
    """Return whether the parameter is `true`, or `default` when it is absent or empty. Any word except `true` and `false` is refused."""
    value = _single(query, name)
    if value not in (None, "true", "false"):
        raise invalid_query("Expected type boolean", name)
    return default if value is None else value == "true"


def number_of(query: QueryDict, name: str, *, minimum: int, maximum: int | None = None) -> int | None:
    """Return an integer within its bounds, or None when the parameter is absent or empty."""
    value = _single(query, name)
    if not value:
        return None
    if not (value.isascii() and value.isdigit()) or len(value) > _MOST_DIGITS:
        raise invalid_query("Expected type integer", name)
    number = int(value)
    if number < minimum:
        raise invalid_query(f"Value {number} is less than minimum {minimum}", name)
    if maximum is not None and number > maximum:
        raise invalid_query(f"Value {number} is greater than maximum {maximum}", name)
    return number


@dataclass(frozen=True)
class Projection:
    """The members of a document that `fields` and `include_fields` select."""

    names: frozenset[str] = frozenset()
    keeps: bool = True
    kept: frozenset[str] = frozenset()

    def __call__(self, document: dict[str, Any]) -> dict[str, Any]:
        if not self.names:
            return document
        return {name: value for name, value in document.items() if name in self.kept or (name in self.names) is self.keeps}

    def wants(self, name: str) -> bool:
        """Tell whether the parameter `fields` names this member."""
        return self.keeps and name in self.names

    def of_list(self, document: dict[str, Any], *only_on_request: str) -> dict[str, Any]:
        """Return the members of a document that a list shows. Members in `only_on_request` are shown only if `fields` names them."""
        return self({name: value for name, value in document.items() if name not in only_on_request or self.wants(name)})


def projection_of(query: QueryDict, known: Collection[str], *, kept: frozenset[str] = frozenset()) -> Projection:
    """Parse `include_fields` and `fields`: comma-separated names, each in `known`. Members in `kept` are always selected."""
    names = frozenset(name.strip() for name in (text_of(query, "fields") or "").split(",") if name.strip())
    unknown = sorted(names - set(known))
    if unknown:
        raise invalid_query(f"Unknown field, expected some of {', '.join(known)}", "fields")
    return Projection(names, keeps=switch_of(query, "include_fields", default=True), kept=kept)
