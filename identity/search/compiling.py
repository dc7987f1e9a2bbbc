"""Compiles the clauses of a query to conditions on columns: finds the column of each field, and checks the values. Pure."""

from __future__ import annotations

import ipaddress
import re

from identity.search import json_paths
from identity.search.conditions import (
    Condition,
    DomainIs,
    HasValue,
    IdentityIs,
    JsonHolds,
    JsonLike,
    Never,
    TextBetween,
    TextIs,
    TextLike,
    ValueIs,
    ValueWithin,
)
from identity.search.fields import FIELDS, IDENTITY_PARTS, INDEXED_JSON, INDEXED_TEXT, KNOWN, METADATA, WITHOUT_FIELD, Field, Kind
from identity.search.grammar import parsed_search
from identity.search.moments import span_of
from identity.search.queries import (
    MOST_IDENTITIES,
    MOST_TERMS,
    AllOf,
    AnyOf,
    Between,
    Exact,
    Exists,
    InvalidSearch,
    Matcher,
    Node,
    Not,
    Pattern,
    Term,
)

_WHOLE = re.compile(r"[+-]?\d{1,9}", re.ASCII)


def compiled_search(text: str) -> Node[Condition]:
    """Return the conditions of a query. Raises `InvalidSearch` with a readable reason."""
    compiler = _Compiler()
    return compiler.node(parsed_search(text))


class _Compiler:
    """Turns terms into conditions, and counts the conditions.

    A term without a field becomes one condition for each field that it searches.
    """

    def __init__(self) -> None:
        self._conditions = 0
        self._identities = 0

    def node(self, clause: Node[Term]) -> Node[Condition]:
        match clause:
            case AllOf(parts):
                return AllOf(tuple(self.node(part) for part in parts))
            case AnyOf(parts):
                return AnyOf(tuple(self.node(part) for part in parts))
            case Not(part):
                return Not(self.node(part))
        return self._of_term(clause)

    def _of_term(self, term: Term) -> Node[Condition]:
        if not term.path:
            return self._without_field(term.matcher)
        self._count(1)
        condition = condition_of(term.path, term.matcher)
        self._identities += isinstance(condition, IdentityIs)
        if self._identities > MOST_IDENTITIES:
            raise InvalidSearch(f"the query has more than {MOST_IDENTITIES} terms on identities")
        return condition

    def _without_field(self, matcher: Matcher) -> Node[Condition]:
        if isinstance(matcher, Between | Exists):
            raise InvalidSearch("a range needs a field, such as created_at:[2026-01-01 TO *]")
        self._count(len(WITHOUT_FIELD))
        # A pattern without a field searches only indexed fields. Otherwise, the search for one word with a wildcard would read every user.
        names = INDEXED_TEXT if isinstance(matcher, Pattern) else WITHOUT_FIELD
        return AnyOf(tuple(_of_field(name, FIELDS[name], (), matcher) for name in names))

    def _count(self, further: int) -> None:
        self._conditions += further
        if self._conditions > MOST_TERMS:
            raise InvalidSearch(f"the query has more than {MOST_TERMS} terms; a term without a field counts {len(WITHOUT_FIELD)} times")


def condition_of(path: tuple[str, ...], matcher: Matcher) -> Condition:
    """Return the condition on the field with this path."""
    name = ".".join(path)
    if name in FIELDS:
        return _of_field(name, FIELDS[name], (), matcher)
    if path[0] in METADATA:
        if len(path) == 1 and not isinstance(matcher, Exists):
            raise InvalidSearch(f"{name} needs a key, such as {name}.plan:gold")
        return _of_field(name, METADATA[path[0]], path[1:], matcher)
    if path[0] == "identities" and path[1:] and path[1] in IDENTITY_PARTS and len(path) == 2:
        return _of_identity(name, path[1], matcher)
    raise InvalidSearch(f"the field {name[:60]} is unknown; known fields: {', '.join(KNOWN)}")


def _of_field(name: str, field: Field, keys: tuple[str, ...], matcher: Matcher) -> Condition:
    match field.kind:
        case Kind.FOLDED | Kind.TEXT:
            return _of_text(field, matcher)
        case Kind.DOMAIN:
            return _of_domain(name, field, matcher)
        case Kind.JSON:
            return _of_json(name, field, keys, matcher)
    return _of_value(name, field, matcher)


def _of_value(name: str, field: Field, matcher: Matcher) -> Condition:
    if isinstance(matcher, Pattern):
        raise InvalidSearch(f"{name} does not support wildcards")
    if field.kind is Kind.NUMBER:
        return _of_number(name, field, Between(None, None) if isinstance(matcher, Exists) else matcher)
    if isinstance(matcher, Exists):
        return HasValue(field.column, is_text=False, needs=field.needs)
    if field.kind is Kind.MOMENT:
        return _of_moment(field, matcher)
    if isinstance(matcher, Between):
        raise InvalidSearch(f"{name} does not support ranges")
    return _of_switch(name, field, matcher.text) if field.kind is Kind.SWITCH else _of_address(field, matcher.text)


def _of_text(field: Field, matcher: Matcher) -> Condition:
    is_folded = field.kind is Kind.FOLDED
    match matcher:
        case Exists():
            return HasValue(field.column, is_text=True)
        case Pattern():
            return TextLike(field.column, matcher, is_folded)
        case Between(low, high, includes_low, includes_high):
            return TextBetween(field.column, low, high, includes_low, includes_high, is_folded)
        case Exact(text):
            return TextIs(field.column, text, is_folded) if text else Never()


def _of_domain(name: str, field: Field, matcher: Matcher) -> Condition:
    if isinstance(matcher, Exists):
        return HasValue(field.column, is_text=True)
    if not isinstance(matcher, Exact):
        raise InvalidSearch(f"{name} needs a whole domain, without wildcards and ranges")
    return DomainIs(field.column, matcher.text) if matcher.text and "@" not in matcher.text else Never()


def _of_moment(field: Field, matcher: Exact | Between) -> Condition:
    """Return the requested span of time. A bound that is a day, a month or a year is included or excluded as a whole."""
    if isinstance(matcher, Exact):
        return ValueWithin(field.column, *span_of(matcher.text))
    start = end = None
    if matcher.low is not None:
        start = span_of(matcher.low)[0 if matcher.includes_low else 1]
    if matcher.high is not None:
        end = span_of(matcher.high)[1 if matcher.includes_high else 0]
    if start is None and end is None:
        return HasValue(field.column, is_text=False)
    return ValueWithin(field.column, start, end)


def _of_number(name: str, field: Field, matcher: Exact | Between) -> Condition:
    """Return the requested range of integers. Documents leave out a zero, so no search finds the value 0."""
    if isinstance(matcher, Exact):
        number = _whole(name, matcher.text)
        return ValueWithin(field.column, number, number + 1) if number > 0 else Never()
    start = 1 if matcher.low is None else max(1, _whole(name, matcher.low) + (not matcher.includes_low))
    end = None if matcher.high is None else _whole(name, matcher.high) + matcher.includes_high
    return ValueWithin(field.column, start, end)


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise InvalidSearch(f"{name} needs an integer of at most 9 digits, not {text[:40]}")
    return int(text)


def _of_switch(name: str, field: Field, text: str) -> Condition:
    if text not in ("true", "false"):
        raise InvalidSearch(f"{name} must be true or false, not {text[:40]}")
    return ValueIs(field.column, text == "true", needs=field.needs)


def _of_address(field: Field, text: str) -> Condition:
    try:
        return ValueIs(field.column, str(ipaddress.ip_address(text)))
    except ValueError:
        return Never()


def _of_json(name: str, field: Field, keys: tuple[str, ...], matcher: Matcher) -> Condition:
    match matcher:
        case Exists():
            return JsonHolds(field.column, json_paths.present(keys), is_indexed=False)
        case Exact(text):
            return JsonHolds(field.column, json_paths.equal_to(keys, text), is_indexed=field.column in INDEXED_JSON)
    if field.is_narrow:
        raise InvalidSearch(f"{name} does not support wildcards and ranges")
    if isinstance(matcher, Pattern):
        return JsonLike(field.column, json_paths.path_to(keys), matcher)
    if matcher.low is None and matcher.high is None:
        return JsonHolds(field.column, json_paths.present(keys), is_indexed=False)
    return JsonHolds(field.column, json_paths.within(keys, matcher), is_indexed=False)


def _of_identity(name: str, part: str, matcher: Matcher) -> Condition:
    if isinstance(matcher, Exists):
        # Each user has at least one identity, and each identity has all parts. So the condition is one that is true for every user.
        return HasValue("user_id", is_text=True)
    if not isinstance(matcher, Exact):
        raise InvalidSearch(f"{name} needs a whole value, without wildcards and ranges")
    if part == "isSocial" and matcher.text not in ("true", "false"):
        raise InvalidSearch(f"{name} must be true or false, not {matcher.text[:40]}")
    return IdentityIs(part, matcher.text) if matcher.text else Never()
