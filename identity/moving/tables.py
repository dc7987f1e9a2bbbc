"""The tables that a move copies, in the order of an import, and the SQL of each column at the source and at the target.

Each column has three expressions. `leaving` computes the value in the archive from the row at the source. `arriving` computes the value to
store from the value in the archive. `left` reverses `arriving`: it computes the value in the archive from the row at the target, to compare
the digests of both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from django.db import connection, models
from django.db.models import Model

from identity.models import AuditEntry, Staff, Tenant, User
from identity.moving.carrying import Sealed, TextKey, carriage
from identity.purging import OwnedTable, coverage

Offsets = Mapping[str, "Shift"]


@dataclass(frozen=True)
class Shift:
    """The primary keys of one table: the first and last key of the tenant, and the number that the import adds to each key."""

    first: int
    last: int
    offset: int = 0


@dataclass(frozen=True)
class Column:
    """One column of a table that a move copies."""

    name: str
    type: str
    # The table whose primary keys the column contains, if an import shifts them.
    keys_of: str = ""
    is_cleared: bool = False
    # A foreign key to a staff account is emptied if the account belongs to the platform.
    is_of_staff: bool = False
    is_first_key: bool = False
    text_key: TextKey | None = None
    sealed: Sealed | None = None
    # Set after all rows are inserted, because the row that the column refers to may be inserted later.
    is_late: bool = False

    def leaving(self, row: str) -> str:
        value = f'{row}."{self.name}"'
        if self.is_cleared:
            return f"NULL::{self.type}"
        if self.is_of_staff:
            own = f"SELECT FROM {Staff._meta.db_table} staff WHERE staff.id = {value} AND staff.tenant_id = %(tenant)s"
            return f"CASE WHEN EXISTS ({own}) THEN {value} END"
        return f"coalesce({value}, {row}.id)" if self.is_first_key else value

    def arriving(self, row: str, offsets: Offsets) -> str:
        return self._moved(f'{row}."{self.name}"', row, offsets, sign=1)

    def left(self, row: str, offsets: Offsets) -> str:
        return self._moved(f'{row}."{self.name}"', row, offsets, sign=-1)

    def compared(self, value: str) -> str:
        """Return the part of a value that must be equal on both sides: the value without its encrypted parts."""
        if self.sealed is None:
            return value
        if not self.sealed.members:
            return "''"
        return f"({value} - ARRAY[{', '.join(repr(name) for name in self.sealed.members)}])"

    def _moved(self, value: str, row: str, offsets: Offsets, *, sign: int) -> str:
        if self.text_key is not None:
            return _moved_text(self.text_key, value, row, offsets, sign)
        shift = offsets.get(self.keys_of)
        return f"({value} + {sign * shift.offset})" if shift else value


def _moved_text(key: TextKey, value: str, row: str, offsets: Offsets, sign: int) -> str:
    """Shift the primary key in a text. Keys of rows outside the tenant, such as accounts of the platform, stay unchanged."""
    cases = []
    for label, table in _kinds(key).items():
        if (shift := offsets.get(table)) is None:
            continue
        low, high = (shift.first, shift.last) if sign > 0 else (shift.first + shift.offset, shift.last + shift.offset)
        moved = f"CASE WHEN {value}::numeric BETWEEN {low} AND {high} THEN ({value}::bigint + {sign * shift.offset})::text ELSE {value} END"
        cases.append(f"WHEN '{label}' THEN {moved}")
    if not cases:
        return value
    return (
        f"CASE WHEN {value} ~ '^[0-9]{{1,18}}$' THEN CASE {row}.\"{key.kind_column}\" {' '.join(cases)} ELSE {value} END ELSE {value} END"
    )


def _kinds(key: TextKey) -> dict[str, str]:
    by_label = {table.model._meta.label_lower: table.name for table in carried_tables() if table.is_shifted}
    return by_label if key.kinds is None else {kind: by_label[label] for kind, label in key.kinds.items() if label in by_label}


@dataclass(frozen=True)
class CarriedTable:
    """A table whose rows a move copies."""

    owned: OwnedTable
    columns: tuple[Column, ...] = field(repr=False)

    @property
    def model(self) -> type[Model]:
        return self.owned.model

    @property
    def name(self) -> str:
        return self.model._meta.db_table

    @property
    def key(self) -> str:
        """The column of the primary key, the first column in the archive."""
        return self.columns[0].name

    @property
    def is_shifted(self) -> bool:
        return self.columns[0].keys_of == self.name

    @property
    def early(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.is_late)

    @property
    def late(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.is_late)

    @property
    def sealed(self) -> tuple[Sealed, ...]:
        return tuple(column.sealed for column in self.columns if column.sealed is not None)

    @cached_property
    def rows(self) -> str:
        """The condition that selects the tenant's rows of the table, with the alias `t`."""
        path = self.owned.path
        if path == "tenant_id":
            return "t.tenant_id = %(tenant)s"
        steps = path.split("__")
        return _through(self.model, steps, "t")


def _through(model: type[Model], steps: list[str], alias: str) -> str:
    if len(steps) == 1:
        return f"{alias}.{steps[0]} = %(tenant)s"
    relation = model._meta.get_field(steps[0])
    other = _related(relation)
    inner = _through(other, steps[1:], f"{alias}p")
    key = other._meta.pk.column
    return f"{alias}.{relation.column} IN (SELECT {alias}p.{key} FROM {other._meta.db_table} {alias}p WHERE {inner})"  # type: ignore[union-attr]  # noqa: S608


_tables: list[CarriedTable] = []


def carried_tables() -> tuple[CarriedTable, ...]:
    """Return the tables in the order of an import: rows come after the rows that they refer to."""
    if not _tables:
        _tables.extend(_ordered())
    return tuple(_tables)


def _ordered() -> Iterator[CarriedTable]:
    owned = {table.model: table for table in coverage().tables if table.model not in carriage().left_behind}
    # The audit log is not deleted with its tenant, so it is missing in `coverage`. A move copies it, too.
    owned[AuditEntry] = OwnedTable(AuditEntry, "tenant_id")
    order, late = _order(set(owned))
    for model in order:
        columns = sorted(_columns(model, set(owned), late), key=lambda column: column.name != _key(model).column)
        yield CarriedTable(owned[model], tuple(columns))


def _order(carried: set[type[Model]]) -> tuple[list[type[Model]], set[models.Field[Any, Any]]]:
    """Return the models in the order of an import, and the nullable foreign keys that would form a cycle."""
    graph: dict[type[Model], set[type[Model]]] = {model: set() for model in carried}
    relations = [(model, relation) for model in sorted(carried, key=lambda model: model._meta.label) for relation in _relations(model)]
    for model, relation in relations:
        if not relation.null and _related(relation) in carried:
            graph[model].add(_related(relation))
    late = set()
    for model, relation in relations:
        other = _related(relation)
        if relation.null and other in carried and (other is model or _closes_a_ring(graph, model, other)):
            late.add(relation)
        elif relation.null and other in carried:
            graph[model].add(other)
    return list(TopologicalSorter(graph).static_order()), late


def _closes_a_ring(graph: dict[type[Model], set[type[Model]]], model: type[Model], other: type[Model]) -> bool:
    tried = {**graph, model: graph[model] | {other}}
    try:
        TopologicalSorter(tried).prepare()
    except CycleError:
        return True
    return False


def _columns(model: type[Model], carried: set[type[Model]], late: set[models.Field[Any, Any]]) -> Iterator[Column]:
    said = carriage()
    sealed = {each.column: each for each in said.sealed.get(model, ())}
    texts = {each.column: each for each in said.text_keys.get(model, ())}
    keys = said.keys.get(model, {})
    for row_field in model._meta.concrete_fields:
        if getattr(row_field, "generated", False):
            continue
        name = str(row_field.column)
        other = _related(row_field) if row_field.is_relation else keys.get(name)
        is_lost = row_field.is_relation and other is not Tenant and other not in carried
        yield Column(
            name,
            str(row_field.db_type(connection)),
            keys_of=_keys_of(model if row_field.primary_key and other is None else other, carried),
            is_cleared=is_lost or name in said.cleared.get(model, ()),
            is_of_staff=other is Staff and row_field.null,
            is_first_key=model is User and name == "first_key",
            text_key=texts.get(name),
            sealed=sealed.get(name),
            is_late=row_field in late,
        )


def _keys_of(model: type[Model] | None, carried: set[type[Model]]) -> str:
    """Return the table whose sequence supplies the primary keys of a model; empty if they come from no sequence."""
    while model is not None and model in carried:
        key = _key(model)
        if isinstance(key, models.AutoField | models.BigAutoField):
            return model._meta.db_table
        model = _related(key) if key.is_relation else None
    return ""


def _relations(model: type[Model]) -> list[models.Field[Any, Any]]:
    return [row_field for row_field in model._meta.concrete_fields if row_field.is_relation]


def _related(relation: Any) -> type[Model]:
    related: type[Model] = relation.related_model
    return related


def _key(model: type[Model]) -> models.Field[Any, Any]:
    key: models.Field[Any, Any] = model._meta.pk
    return key
