"""Fast path: queries that run in every request. Their SQL is built once.

The plain path is the query set itself, which builds its SQL anew each time. To read a `User` together with its `Connection` row takes 1,005
µs of processor time with the query set, and 249 µs with this module (`python -m benchmarks fast_paths`, docs/figures.md). Both return the
same model instances, including related instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.base import ModelState
from django.db.models.query import get_related_populators
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init, pre_init

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True)
class _Plan:
    """A query compiled by Django: its SQL, its parameters (markers stand for the values of a call), and the conversion of a row."""

    sql: str
    values: tuple[Any, ...]
    model: Any
    names: Sequence[str]
    columns: slice
    populators: Sequence[Any]
    converters: Sequence[tuple[int, tuple[Sequence[Callable[..., Any]], Any]]]


class _Maker:
    """Makes the same instances as the model's `from_db`, but skips constructor steps that have no effect for this model."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def from_db(self, db: str, names: Sequence[str], values: Sequence[Any]) -> Any:
        """Return an instance with these columns; the other columns are deferred."""
        made = self._model.__new__(self._model)
        made._state = state = ModelState()
        state.adding, state.db = False, db
        made.__dict__.update(zip(names, values, strict=True))
        return made


def _maker(model: Any) -> Any:
    """Return a maker of instances. Returns the model itself if its constructor does more than store columns."""
    plain: Any = models.Model
    is_plain = model.__init__ is plain.__init__ and model.from_db.__func__ is plain.from_db.__func__
    is_told = pre_init.has_listeners(model) or post_init.has_listeners(model)
    keeps = all(isinstance(getattr(model, field.attname), DeferredAttribute) for field in model._meta.concrete_fields)
    return _Maker(model) if is_plain and keeps and not is_told else model


def _populators(wanted: Any, chosen: Any) -> list[Any]:
    """Return makers of a row's related instances, and of the instances that are related to these instances."""
    populators: list[Any] = get_related_populators(wanted, chosen, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # the stubs describe a later Django
    waiting = list(populators)
    while waiting:
        populator = waiting.pop()
        populator.model_cls = _maker(populator.model_cls)
        waiting.extend(populator.related_populators)
    return populators


class CompiledSelect(Generic[Row]):
    """A query for one row by text values: `CompiledSelect(lambda key: Thing.objects.filter(key=key), "key")`.

    The query may depend only on its values: it is compiled at the first call and kept for the process.
    """

    def __init__(self, query: Callable[..., models.QuerySet[Row]], *names: str) -> None:
        self._query = query
        # No column can contain a NUL character, so these placeholders are unambiguous.
        self._markers = {name: f"\x00{name}" for name in names}

    def first(self, **values: str) -> Row | None:
        """Return the row for these values, or None. Queries every time. If several rows match, the database chooses one."""
        connection = connections[DEFAULT_DB_ALIAS]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, self.parameters(**values))
            found = cursor.fetchone()
        return None if found is None else self.built(found, connection)

    @property
    def sql(self) -> str:
        return self._plan.sql

    def parameters(self, **values: str) -> list[Any]:
        """Return the values for the parameters of the SQL."""
        given = {self._markers[name]: value for name, value in values.items()}
        return [given.get(value, value) if isinstance(value, str) else value for value in self._plan.values]

    def built(self, found: Sequence[Any], connection: Any) -> Row:
        """Return the instance that Django would make of a row. Converters get `connection` but run no query on it."""
        plan, columns = self._plan, list(found)
        for position, (converters, expression) in plan.converters:
            for convert in converters:
                columns[position] = convert(columns[position], expression, connection)
        row: Row = plan.model.from_db(DEFAULT_DB_ALIAS, plan.names, columns[plan.columns])
        for populator in plan.populators:
            populator.populate(columns, row)
        return row

    @cached_property
    def _plan(self) -> _Plan:
        compiler = self._query(**self._markers).query.get_compiler(using=DEFAULT_DB_ALIAS)
        sql, values = compiler.as_sql()
        missing = [name for name, marker in self._markers.items() if marker not in values]
        if missing:
            raise ValueError(f"The query does not use {', '.join(missing)}.")
        chosen: Any = (compiler.select or [])[: compiler.col_count]
        wanted: Any = compiler.klass_info
        fields = wanted["select_fields"]
        columns = slice(fields[0], fields[-1] + 1)
        return _Plan(
            sql=sql,
            values=tuple(values),
            model=_maker(wanted["model"]),
            names=[entry[0].target.attname for entry in chosen[columns]],
            columns=columns,
            populators=_populators(wanted, chosen),
            converters=tuple(compiler.get_converters([entry[0] for entry in chosen]).items()),
        )
