"""The clauses of a query as a tree, and the error for an invalid query. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, Union

Leaf = TypeVar("Leaf")

# Limits of one query. They bound the length of the statement, the cost per row and the depth of recursion.
LONGEST = 4096
MOST_TERMS = 128
# Lower than `MOST_TERMS`, because each condition on an identity costs a separate lookup.
MOST_IDENTITIES = 32
DEEPEST = 16
MOST_WILDCARDS = 5
# In a pattern that begins with a wildcard, one literal piece must have this many letters and digits, so that the trigram index
# narrows the search.
LETTERS_AFTER_LEADING_WILDCARD = 3


class InvalidSearch(ValueError):
    """The query is invalid or not supported. The text explains the reason to the author of the query."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The whole value of the field is this text, number or date."""

    text: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text with wildcards between literal `pieces`: `singles` tells for each wildcard whether it is `?` instead of `*`."""

    pieces: tuple[str, ...]
    singles: tuple[bool, ...]

    @property
    def written(self) -> str:
        """Return the pattern in the syntax of a query."""
        marks = ["?" if single else "*" for single in self.singles]
        return "".join(piece + mark for piece, mark in zip(self.pieces, [*marks, ""], strict=True))


@dataclass(frozen=True, slots=True)
class Between:
    """The value of the field is in this range; None means no bound."""

    low: str | None
    high: str | None
    includes_low: bool = True
    includes_high: bool = True


@dataclass(frozen=True, slots=True)
class Exists:
    """The field has any value."""


Matcher = Exact | Pattern | Between | Exists


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one field. `path` contains the parts of the field's name; it is empty for a term without a field."""

    path: tuple[str, ...]
    matcher: Matcher


@dataclass(frozen=True, slots=True)
class AllOf(Generic[Leaf]):
    """True if all parts are true, or if there are no parts."""

    parts: tuple[Node[Leaf], ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[Leaf]):
    """True if at least one part is true."""

    parts: tuple[Node[Leaf], ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[Leaf]):
    """True unless the part is true."""

    part: Node[Leaf]


# A tree of clauses. Its leaves are terms. `identity.search.compiling` replaces the terms by conditions on columns.
Node: TypeAlias = Union[Leaf, "AllOf[Leaf]", "AnyOf[Leaf]", "Not[Leaf]"]
Clause: TypeAlias = Node[Term]
EVERYTHING: Clause = AllOf(())
