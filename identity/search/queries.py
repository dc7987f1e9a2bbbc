"""A query as a tree of clauses, as every later step reads it, and the one error of a query that is refused. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, Union

Leaf = TypeVar("Leaf")

# Limits of one query. They bound the statement: its length, the rows' cost and the depth of every recursion over the tree.
LONGEST = 4096
MOST_TERMS = 128
# Each of these is looked up on its own.
MOST_IDENTITIES = 32
DEEPEST = 16
MOST_WILDCARDS = 5
# A wildcard at the start needs so many letters and digits in one piece, or the trigram index cannot narrow the search.
LETTERS_AFTER_LEADING_WILDCARD = 3


class InvalidSearch(ValueError):
    """Not a query, or one that is refused; the text says why in words for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The whole value, a number or a date."""

    text: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text with wildcards: `pieces` are literal texts, and between two of them stands `*`, or `?` where `singles` says so."""

    pieces: tuple[str, ...]
    singles: tuple[bool, ...]

    @property
    def written(self) -> str:
        """Return the pattern as a person would write it."""
        marks = ["?" if single else "*" for single in self.singles]
        return "".join(piece + mark for piece, mark in zip(self.pieces, [*marks, ""], strict=True))


@dataclass(frozen=True, slots=True)
class Between:
    """A range; an end that is None is open."""

    low: str | None
    high: str | None
    includes_low: bool = True
    includes_high: bool = True


@dataclass(frozen=True, slots=True)
class Exists:
    """Any value."""


Matcher = Exact | Pattern | Between | Exists


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one field. `path` holds the parts of the field's name; empty: a term without a field."""

    path: tuple[str, ...]
    matcher: Matcher


@dataclass(frozen=True, slots=True)
class AllOf(Generic[Leaf]):
    """True where all parts are; without parts: true."""

    parts: tuple[Node[Leaf], ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[Leaf]):
    """True where one part is; without parts: false."""

    parts: tuple[Node[Leaf], ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[Leaf]):
    """True where the part is not true."""

    part: Node[Leaf]


# A tree of clauses; its leaves are terms first and conditions on columns after `identity.search.compiling`.
Node: TypeAlias = Union[Leaf, "AllOf[Leaf]", "AnyOf[Leaf]", "Not[Leaf]"]
Clause: TypeAlias = Node[Term]
EVERYTHING: Clause = AllOf(())
