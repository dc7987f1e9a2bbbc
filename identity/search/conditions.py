"""Conditions on columns: what a clause asks of one field, with its values read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from identity.search.queries import Pattern


@dataclass(frozen=True, slots=True)
class TextIs:
    """The column holds this text; in any case of letters where `is_folded`."""

    column: str
    text: str
    is_folded: bool


@dataclass(frozen=True, slots=True)
class TextLike:
    """The column holds text of this pattern."""

    column: str
    pattern: Pattern
    is_folded: bool


@dataclass(frozen=True, slots=True)
class TextBetween:
    """The column holds text of this range, compared code point by code point."""

    column: str
    low: str | None
    high: str | None
    includes_low: bool
    includes_high: bool
    is_folded: bool


@dataclass(frozen=True, slots=True)
class DomainIs:
    """The column holds an e-mail address of this domain, in any case of letters."""

    column: str
    domain: str


@dataclass(frozen=True, slots=True)
class ValueIs:
    """The column holds this value, and `needs` (when it is named) holds text."""

    column: str
    value: bool | int | str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class ValueWithin:
    """The column holds a value of `start <= value < end`; an end that is None is open."""

    column: str
    start: datetime | int | None
    end: datetime | int | None


@dataclass(frozen=True, slots=True)
class HasValue:
    """The column has a value that a document shows; so has `needs` when it is named."""

    column: str
    is_text: bool
    needs: str = ""


@dataclass(frozen=True, slots=True)
class JsonHolds:
    """The JSON of the column fulfils this predicate of the SQL/JSON path language."""

    column: str
    predicate: str
    is_indexed: bool


@dataclass(frozen=True, slots=True)
class JsonLike:
    """The JSON of the column holds, at this path, a text of this pattern."""

    column: str
    path: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class IdentityIs:
    """An identity of the user has this value in this part."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Never:
    """No user can have this value."""


Condition = TextIs | TextLike | TextBetween | DomainIs | ValueIs | ValueWithin | HasValue | JsonHolds | JsonLike | IdentityIs | Never
