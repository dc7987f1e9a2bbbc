"""The query language of `GET /logs`, a subset of Lucene's: fields with values, `AND`, `OR`, `NOT`, groups, ranges of dates.

    type:(fp OR fu) AND user_name:"ada@example.com" AND date:[2026-01-01 TO *]

A value that ends in `*` is a prefix. AND or OR between terms is required, because query languages differ in the default operator.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db.models import Q

LONGEST = 1024
_MOST_TERMS = 32
_TEXT_FIELDS = ("type", "description", "client_id", "client_name", "connection", "user_id", "user_name", "user_agent")
FIELDS = (*_TEXT_FIELDS, "log_id", "ip", "date")
_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[():])|(?P<range>[\[{][^\[\]{}]*[\]}])|(?P<quoted>"(?:\\.|[^"\\])*")|(?P<word>[^\s()\[\]{}":]+))""",
    re.VERBOSE,
)
_RANGE = re.compile(r"\s*(\S+)\s+TO\s+(\S+)\s*")
_DAY = timedelta(days=1)
_NOTHING = Q(pk__in=[])


class InvalidQuery(ValueError):
    """Invalid query of the log."""


def parsed_query(text: str) -> Q:
    """Return the condition for a query text. Raises `InvalidQuery` with the reason."""
    if len(text) > LONGEST:
        raise InvalidQuery(f"more than {LONGEST} characters")
    return _Parser(text).whole()


def may_hold(condition: Q, has_type: Callable[[str], bool], has_prefix: Callable[[str], bool]) -> bool:
    """Return False if the types of a table's lines show that no line can meet the condition. In this case, the table need not be read.

    `has_type` tells whether the table has lines of a type; `has_prefix` tells whether the table has lines whose type begins with a prefix.
    """
    if condition.negated:
        return True
    found = (_child_may_hold(child, has_type, has_prefix) for child in condition.children)
    return any(found) if condition.connector == Q.OR and condition.children else all(found)


def _child_may_hold(child: object, has_type: Callable[[str], bool], has_prefix: Callable[[str], bool]) -> bool:
    match child:
        case Q():
            return may_hold(child, has_type, has_prefix)
        case ("type", str(code)):
            return has_type(code)
        case ("type__startswith", str(code)):
            return has_prefix(code)
        case _:
            return True


class _Parser:
    """Parses one query from left to right. `_tokens` contains kind and text of the remaining tokens, in reverse order."""

    def __init__(self, text: str) -> None:
        self._tokens = list(reversed(_tokens(text)))
        self._terms = 0

    def whole(self) -> Q:
        found = self._either()
        if self._tokens:
            raise InvalidQuery(f"expected AND or OR before {self._tokens[-1][1][:20]}")
        return found

    def _either(self) -> Q:
        found = self._all()
        while self._take("word", "OR"):
            found |= self._all()
        return found

    def _all(self) -> Q:
        found = self._one()
        while self._take("word", "AND"):
            found &= self._one()
        return found

    def _one(self) -> Q:
        self._count()
        if self._take("word", "NOT"):
            return ~self._one()
        if self._take("mark", "("):
            found = self._either()
            self._expect(")")
            return found
        field = self._next("word", "a field")
        if field not in FIELDS:
            raise InvalidQuery(f"the field {field[:20]} is unknown, use one of {', '.join(FIELDS)}")
        self._expect(":")
        return self._value_of(field)

    def _value_of(self, field: str) -> Q:
        if not self._take("mark", "("):
            return self._condition(field)
        found = self._condition(field)
        while self._take("word", "OR"):
            found |= self._condition(field)
        self._expect(")")
        return found

    def _condition(self, field: str) -> Q:
        self._count()
        if not self._tokens:
            raise InvalidQuery(f"a value of {field} is missing")
        kind, text = self._tokens.pop()
        if kind == "range" and field == "date":
            return _date_range(text)
        if kind == "quoted":
            return _equal(field, re.sub(r"\\(.)", r"\1", text[1:-1]))
        if kind == "word" and text not in ("AND", "OR", "NOT"):
            return _prefixed(field, text[:-1]) if text.endswith("*") else _equal(field, text)
        raise InvalidQuery(f"{text[:20]} is not a value of {field}")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > _MOST_TERMS:
            raise InvalidQuery(f"more than {_MOST_TERMS} terms")

    def _take(self, kind: str, text: str) -> bool:
        if not self._tokens or self._tokens[-1] != (kind, text):
            return False
        self._tokens.pop()
        return True

    def _expect(self, mark: str) -> None:
        if not self._take("mark", mark):
            raise InvalidQuery(f"expected {mark}")

    def _next(self, kind: str, what: str) -> str:
        if not self._tokens or self._tokens[-1][0] != kind:
            raise InvalidQuery(f"expected {what}")
        return self._tokens.pop()[1]


def _tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise InvalidQuery(f"cannot be parsed from {text[place : place + 20]}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        place = match.end()
    return found


def _equal(field: str, value: str) -> Q:
    if field == "date":
        return _date_range(f"[{value} TO {value}]")
    if field == "ip":
        return Q(ip=value) if _is_address(value) else _NOTHING
    return Q(**{"pk" if field == "log_id" else field: value})


def _prefixed(field: str, value: str) -> Q:
    if field not in _TEXT_FIELDS:
        raise InvalidQuery(f"{field} does not support prefixes")
    return Q(**{f"{field}__startswith": value})


def _date_range(text: str) -> Q:
    bounds = _RANGE.fullmatch(text[1:-1])
    if bounds is None:
        raise InvalidQuery("a range is written [from TO to]")
    first, last = bounds.groups()
    condition = Q()
    if first != "*":
        condition &= Q(**{"created_at__gte" if text[0] == "[" else "created_at__gt": _moment(first)})
    if last != "*":
        # A range that ends with a day includes the whole day.
        is_day = len(last) == len("2026-01-01") and text[-1] == "]"
        until = "created_at__lt" if is_day or text[-1] == "}" else "created_at__lte"
        condition &= Q(**{until: _moment(last, _DAY if is_day else timedelta())})
    return condition


def _moment(text: str, later: timedelta = timedelta()) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)) + later
    except (ValueError, OverflowError) as error:
        raise InvalidQuery(f"{text[:20]} is not a date") from error


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
