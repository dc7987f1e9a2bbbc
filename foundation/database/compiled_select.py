"""Fast path: queries that are asked at every request, with their SQL built once.

The plain path is the query set itself, which builds its SQL anew each time: 249 µs of processor time for a user with its connection
instead of 1,005 (`python -m benchmarks fast_paths`, docs/figures.md). Rows become the same model instances, related ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True)
class _Plan:
    """What Django worked out for a query: its text, its values with markers among them, and how a row becomes instances."""

    sql: str
    values: tuple[Any, ...]
    model: Any
    names: Sequence[str]
    columns: slice
    populators: Sequence[Any]
    converters: Sequence[tuple[int, tuple[Sequence[Callable[..., Any]], Any]]]


class CompiledSelect(Generic[Row]):
    """A query for one row by text values: `CompiledSelect(lambda key: Thing.objects.filter(key=key), "key")`.

    The query must not depend on anything but its values: it is built by the first question, and kept for the process.
    """

    def __init__(self, query: Callable[..., models.QuerySet[Row]], *names: str) -> None:
        self._query = query
        # No column holds a NUL character, so none of these can be anything else.
        self._markers = {name: f"\x00{name}" for name in names}

    def first(self, **values: str) -> Row | None:
        """Return the row for these values, or None. Reads every time. With more than one row the database chooses."""
        plan = self._plan
        given = {self._markers[name]: value for name, value in values.items()}
        connection = connections[DEFAULT_DB_ALIAS]
        with connection.cursor() as cursor:
            cursor.execute(plan.sql, [given.get(value, value) if isinstance(value, str) else value for value in plan.values])
            found = cursor.fetchone()
        if found is None:
            return None
        columns = list(found)
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
            model=wanted["model"],
            names=[entry[0].target.attname for entry in chosen[columns]],
            columns=columns,
            populators=get_related_populators(wanted, chosen, DEFAULT_DB_ALIAS),  # type: ignore[call-arg]  # the stubs are of a later Django
            converters=tuple(compiler.get_converters([entry[0] for entry in chosen]).items()),
        )
