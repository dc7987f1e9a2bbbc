"""Conditions on columns: one clause about one field, with parsed values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from identity.search.queries import Pattern


@dataclass(frozen=True, slots=True)
class TextIs:
    """The column equals this text; `is_folded` ignores letter case."""

    column: str
    text: str
    is_folded: bool


@dataclass(frozen=True, slots=True)
class TextLike:
    """The column matches this pattern; `is_folded` ignores letter case."""

    column: str
    pattern: Pattern
    is_folded: bool


@dataclass(frozen=True, slots=True)
class TextBetween:
    """The column is in this range of texts, compared by code point."""

    column: str
    low: str | None
    high: str | None
    includes_low: bool
    includes_high: bool
    is_folded: bool


@dataclass(frozen=True, slots=True)
class DomainIs:
    """The column contains an email address of this domain; letter case is ignored."""

    column: str
    domain: str


@dataclass(frozen=True, slots=True)
class ValueIs:
    """The column has this value. If `needs` names another column, the other column must not be empty."""

    column: str
    value: bool | int | str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class ValueWithin:
    """The column is in `start <= value < end`; None means no bound."""

    column: str
    start: datetime | int | None
    end: datetime | int | None


@dataclass(frozen=True, slots=True)
class HasValue:
    """The column has a value that documents contain: not null, and for a text (`is_text`) not empty.

    If `needs` names another column, the other column must not be empty.
    """

    column: str
    is_text: bool
    needs: str = ""


@dataclass(frozen=True, slots=True)
class JsonHolds:
    """The JSON of the column fulfills this predicate of the SQL/JSON path language."""

    column: str
    predicate: str
    is_indexed: bool


@dataclass(frozen=True, slots=True)
class JsonLike:
    """The JSON of the column has a text at this path that matches the pattern."""

    column: str
    path: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class IdentityIs:
    """This part of an identity of the user has this value."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Never:
    """A condition that no user meets, because no user can have the value."""


Condition = TextIs | TextLike | TextBetween | DomainIs | ValueIs | ValueWithin | HasValue | JsonHolds | JsonLike | IdentityIs | Never
