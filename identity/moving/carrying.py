"""What apps declare about their tables for moves. The tables themselves come from `identity.purging`, so no table can be forgotten.

At the target, where other rows may have the same keys, primary keys from a sequence are shifted, and foreign keys are shifted by the same
amount. Apps declare the rest: encrypted values, whose encryption is bound to the row; keys in other columns; and tables that stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import Q

# The keys that lead to a member of a JSON column; empty for a column that is encrypted as a whole.
Pointer = tuple[str | int, ...]
# Maps the pointer of each encrypted value of a row to its place: the text that was passed to the encryption as associated data.
Places = Callable[[Any], Mapping[Pointer, str]]


@dataclass(frozen=True)
class Sealed:
    """A column with encrypted values. `holding` selects the rows that have an encrypted value.

    `members` are the top-level members of a JSON column that are encrypted; empty if the whole column is encrypted.
    """

    column: str
    places: Places
    holding: Q
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextKey:
    """A text column with the primary key of a row of another table.

    The column `kind_column` determines the model of that row. It contains a key of the mapping `kinds`, whose values are labels of models.
    Without `kinds`, the column contains the label itself, such as `identity.staff`.
    """

    column: str
    kind_column: str
    kinds: Mapping[str, str] | None = None


@dataclass
class Carriage:
    """The declarations of all apps about their tables, by model."""

    left_behind: dict[type[models.Model], str] = field(default_factory=dict)
    sealed: dict[type[models.Model], tuple[Sealed, ...]] = field(default_factory=dict)
    keys: dict[type[models.Model], dict[str, type[models.Model]]] = field(default_factory=dict)
    text_keys: dict[type[models.Model], tuple[TextKey, ...]] = field(default_factory=dict)
    cleared: dict[type[models.Model], frozenset[str]] = field(default_factory=dict)
    filled_by_triggers: list[type[models.Model]] = field(default_factory=list)


_carriage = Carriage()


def carry(
    app_label: str,
    *,
    left_behind: Mapping[str, str] | None = None,
    sealed: Mapping[str, tuple[Sealed, ...]] | None = None,
    keys: Mapping[str, Mapping[str, str]] | None = None,
    text_keys: Mapping[str, tuple[TextKey, ...]] | None = None,
    cleared: Mapping[str, Iterable[str]] | None = None,
    filled_by_triggers: Iterable[str] = (),
) -> None:
    """Declare how a move copies the tables of an app. Models are named by their class.

    `left_behind` names the tables that a move does not copy, each with the reason. Some columns contain the primary key of another model
    but are no foreign keys: `keys` names the model for each. `cleared` names columns that are empty at the target. Triggers add rows to
    tables of `filled_by_triggers` during an import. The import deletes these rows in the same transaction.
    """

    def model(name: str) -> type[models.Model]:
        return apps.get_model(name) if "." in name else apps.get_model(app_label, name)

    _carriage.left_behind |= {model(name): reason for name, reason in (left_behind or {}).items()}
    _carriage.sealed |= {model(name): columns for name, columns in (sealed or {}).items()}
    _carriage.keys |= {model(name): {column: model(other) for column, other in named.items()} for name, named in (keys or {}).items()}
    _carriage.text_keys |= {model(name): columns for name, columns in (text_keys or {}).items()}
    _carriage.cleared |= {model(name): frozenset(columns) for name, columns in (cleared or {}).items()}
    _carriage.filled_by_triggers += [model(name) for name in filled_by_triggers]


def carriage() -> Carriage:
    """Return the declarations of all apps."""
    return _carriage


def sealed_text(column: str, place: Callable[[Any], str]) -> Sealed:
    """Declare a text column that is empty or contains one encrypted value."""
    return Sealed(column, lambda row: {(): place(row)} if getattr(row, column) else {}, ~Q(**{column: ""}))


def sealed_names(column: str, place: Callable[[Any, str], str]) -> Sealed:
    """Declare a JSON column that maps names to encrypted values."""
    return Sealed(column, lambda row: {(name,): place(row, name) for name in getattr(row, column)}, ~Q(**{column: {}}))


def sealed_member(column: str, member: str, place: Callable[[Any], str]) -> Sealed:
    """Declare a JSON column with one encrypted member."""
    return Sealed(
        column,
        lambda row: {(member,): place(row)} if getattr(row, column).get(member) else {},
        Q(**{f"{column}__has_key": member}),
        (member,),
    )
