"""Lists of growing tables: keyset paging, whose cost does not grow with the table.

An index provides the order of the rows. A page begins directly after or before the key of a row, so PostgreSQL does not read the rows of
the pages before. Counting stops at a limit. Indexed filters use their index. Every other filter or search examines at most `WALK` rows per
page. If this limit ends the search, the page reports that it is partial, and contains the key from which the next page continues.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import build_q_object_from_lookup_parameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import EmptyResultSet, FieldError, ValidationError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, models
from django.db.models import BooleanField, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.http import HttpRequest

from foundation.admin.bounded_paginator import COUNT_LIMIT, bounded_count
from foundation.admin.replica_source import source_of
from foundation.database.replica import PRIMARY, Source, give_up

WALK = 20_000
# An exact search sorts at most this many rows. If more rows match, the list examines rows in its own order instead.
FOUND = 10_000
AFTER, BEFORE = "after", "before"

Rows = QuerySet[Any, Any]


@dataclass(frozen=True)
class Order:
    """Columns that order the rows of a model, each ascending or descending. No column is ever null.

    The first `fixed` columns have the same value in all listed rows.
    """

    model: type[models.Model]
    columns: tuple[tuple[str, bool], ...]
    fixed: int = 0

    @classmethod
    def of(cls, model: type[models.Model], names: Any, *, same: str = "") -> Order:
        """Parse a Django `ordering`, and add the primary key, so that the order is total.

        All rows have the same value in the column `same`.
        """
        key = model._meta.pk.attname
        columns = [(name.lstrip("-"), name.startswith("-")) for name in names]
        columns = [(key if name == "pk" else model._meta.get_field(name).attname, falls) for name, falls in columns]  # type: ignore[union-attr]
        if key not in dict(columns):
            columns.append((key, columns[-1][1] if columns else True))
        return cls(model, tuple(columns), int(columns[0][0] == same))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def reversed(self) -> Order:
        return Order(self.model, tuple((name, not falls) for name, falls in self.columns), self.fixed)

    def sort(self, rows: Rows) -> Rows:
        return rows.order_by(*(f"-{name}" if falls else name for name, falls in self.columns))

    def beyond(self, rows: Rows, key: tuple[Any, ...]) -> Rows:
        """Return the rows after this key.

        A fixed column is not compared: with a comparison on it, PostgreSQL would read the index from its start.
        """
        columns, key = self.columns[self.fixed :], key[self.fixed :]
        name, falls = columns[0]
        if len(columns) == 1:
            return rows.filter(**{f"{name}__{'lt' if falls else 'gt'}": key[0]})
        if len({falling for _, falling in columns}) == 1:
            lookup: Any = TupleLessThan if falls else TupleGreaterThan
            return rows.filter(lookup(Tuple(*(F(column) for column, _ in columns)), key))
        return rows.filter(_stepwise(columns, key), **{f"{name}__{'lte' if falls else 'gte'}": key[0]})

    def key_of(self, row: models.Model) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for name in self.names)

    def written(self, key: tuple[Any, ...]) -> str:
        """Return a key as URL text."""
        return json.dumps([value.isoformat() if hasattr(value, "isoformat") else str(value) for value in key], separators=(",", ":"))

    def read(self, text: str) -> tuple[Any, ...] | None:
        """Return the key in URL text; invalid text counts as no key."""
        try:
            parts = json.loads(text)
            if not isinstance(parts, list) or len(parts) != len(self.columns) or not all(isinstance(part, str) for part in parts):
                return None
            return tuple(self._value(name, part) for name, part in zip(self.names, parts, strict=True))
        except (ValueError, ValidationError, RecursionError):
            return None

    def _value(self, name: str, text: str) -> Any:
        column: Any = self.model._meta.get_field(name)
        column = column.target_field if column.is_relation else column
        value = column.to_python(text)
        column.run_validators(value)
        return value


def _stepwise(columns: tuple[tuple[str, bool], ...], key: tuple[Any, ...]) -> Q:
    """Return the condition that a row comes after `key`, for a mix of ascending and descending columns. PostgreSQL uses no index for this
    condition, so the caller adds a range of the first column."""
    found, equal = Q(), Q()
    for (name, falls), value in zip(columns, key, strict=True):
        found |= equal & Q(**{f"{name}__{'lt' if falls else 'gt'}": value})
        equal &= Q(**{name: value})
    return found


@dataclass
class _Asked:
    """The rows that match the filters of a request.

    `base` applies only the filters that an index serves; `narrowed` applies all filters. `is_walked` tells whether `base` and `narrowed`
    can differ.
    """

    base: Rows
    narrowed: Rows
    is_walked: bool = False


@dataclass
class _Page:
    rows: list[Any] = field(default_factory=list)
    # Keys of the neighboring pages, None at an end.
    before: tuple[Any, ...] | None = None
    after: tuple[Any, ...] | None = None
    is_partial: bool = False


class KeysetChangeList(ChangeList):
    """Django's change list with keyset pages; filters, search and display come from the admin class as usual."""

    model_admin: Any
    asked: _Asked
    page: _Page
    source: Source = PRIMARY
    is_truncated = False
    walk = WALK

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in (AFTER, BEFORE)}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Remove the page's key from the parameters, so that another filter starts at the first page."""
        return super().get_query_string(new_params, [*(remove or ()), AFTER, BEFORE])

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Rows:
        """Return all matching rows in order. Actions on all matching rows use this query set."""
        self.filter_specs, self.has_filters, remaining, _, self.has_active_filters = self.get_filters(request)
        same = self.model_admin.tenant_column if self.model_admin.is_bound(request) else ""
        self.order = Order.of(self.model, self.model_admin.get_ordering(request) or self.opts.ordering, same=same or "")
        root = self.model_admin.rows_to_list(request, self.root_queryset)
        asked = self.asked = _Asked(root, self.root_queryset)
        indexed = self.model_admin.filters_by_index(request)
        for spec in self.filter_specs:
            if not getattr(spec, "used_parameters", None):
                continue
            asked.narrowed = _narrowed(spec, request, asked.narrowed)
            if getattr(spec, "field_path", "") in indexed:
                asked.base = _narrowed(spec, request, asked.base)
            else:
                asked.is_walked = True
        if remaining:
            asked.narrowed, asked.is_walked = self._looked_up(asked.narrowed, remaining), True
        self._search(request, asked)
        self.clear_all_filters_qs = self.get_query_string(new_params=remaining, remove=self.get_filters_params())
        return self.order.sort(self.apply_select_related(asked.narrowed))

    def _looked_up(self, rows: Rows, remaining: Any) -> Rows:
        try:
            return rows.filter(build_q_object_from_lookup_parameters(remaining))
        except (ValueError, TypeError, ValidationError, FieldError) as error:
            raise IncorrectLookupParameters(error) from error

    def _search(self, request: HttpRequest, asked: _Asked) -> None:
        term = self.query.strip()
        if not term:
            return
        found = self.model_admin.found_by_index(request, asked.base, term)
        if found is None:
            asked.narrowed, asked.is_walked = self.model_admin.get_search_results(request, asked.narrowed, self.query)[0], True
            return
        keys = found.order_by().values("pk")
        if not keys.exists():
            # No row matches, so skip the query of the page: the planner does not know that `keys` is empty, and could search all rows.
            asked.base, asked.narrowed, asked.is_walked = asked.base.none(), asked.narrowed.none(), False
            return
        if keys[FOUND : FOUND + 1].exists():
            # With so many matches, examining the list in order soon finds enough rows for a page.
            asked.narrowed, asked.is_walked = self.model_admin.found_by_index(request, asked.narrowed, term), True
            return
        asked.base = asked.narrowed = asked.narrowed.filter(pk__in=keys[:FOUND])
        asked.is_walked = False

    def get_results(self, request: HttpRequest) -> None:
        """Read the page and count the rows, on a replica if the replica is recent enough."""
        self.source = source_of(request)
        try:
            self._read(request)
        except DatabaseError as error:
            if self.source is PRIMARY:
                raise
            give_up(error)
            self.source = PRIMARY
            self._read(request)

    def _read(self, request: HttpRequest) -> None:
        place = {name: self.order.read(request.GET[name]) for name in (AFTER, BEFORE) if name in request.GET}
        self.page = page = self._page(place.get(AFTER), place.get(BEFORE))
        self.result_list = page.rows
        self.result_count = len(page.rows)
        if not self.asked.is_walked and (page.before is not None or page.after is not None):
            counted = bounded_count(self.order.sort(self.asked.base.using(self.source.alias)))
            self.is_truncated = counted > COUNT_LIMIT
            self.result_count = min(counted, COUNT_LIMIT)
        self.full_result_count = None
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        self.paginator = self.model_admin.get_paginator(request, self.root_queryset.none(), self.list_per_page)

    def _page(self, after: tuple[Any, ...] | None, before: tuple[Any, ...] | None) -> _Page:
        """Return the page after a key, before a key, or the first page."""
        is_backward = before is not None and after is None
        order = self.order.reversed() if is_backward else self.order
        place = before if is_backward else after
        rows, base = (found.using(self.source.alias).select_related(None).order_by() for found in (self.asked.narrowed, self.asked.base))
        if place is not None:
            base = order.beyond(base, place)
        edge = None
        if self.asked.is_walked:
            edge = order.sort(base).values_list(*order.names)[WALK - 1 : WALK].first()
            found = _walked(order, base, rows, most=self.list_per_page + 1)
        else:
            found = list(order.sort(base).values_list(*order.names)[: self.list_per_page + 1])
        taken, is_full = found[: self.list_per_page], len(found) > self.list_per_page
        onward = taken[-1] if is_full else edge
        back = None if place is None else taken[0] if taken else place
        is_partial = not is_full and edge is not None
        if is_backward:
            return _Page(self._rows(taken[::-1]), before=onward, after=back, is_partial=is_partial)
        return _Page(self._rows(taken), before=back, after=onward, is_partial=is_partial)

    def _rows(self, keys: list[tuple[Any, ...]]) -> list[Any]:
        """Return the rows of these keys with their displayed relations, in this order.

        The keys are read first and then the rows of these keys, so PostgreSQL never joins more than one page.
        """
        place = self.order.names.index(self.opts.pk.attname)
        pks = [key[place] for key in keys]
        found = {
            row.pk: row for row in self.apply_select_related(self.root_queryset.using(self.source.alias)).order_by().filter(pk__in=pks)
        }
        return [found[pk] for pk in pks if pk in found]

    @property
    def has_counted(self) -> bool:
        """Whether `result_count` is the exact number of matching rows."""
        return not (self.asked.is_walked or self.is_truncated)

    @property
    def after_url(self) -> str:
        return self._url(AFTER, self.page.after)

    @property
    def before_url(self) -> str:
        return self._url(BEFORE, self.page.before)

    @property
    def first_url(self) -> str:
        return self.get_query_string() if self.page.before is not None else ""

    def _url(self, name: str, key: tuple[Any, ...] | None) -> str:
        if key is None:
            return ""
        return super().get_query_string({name: self.order.written(key)}, [BEFORE if name == AFTER else AFTER])


def _walked(order: Order, base: Rows, narrowed: Rows, *, most: int) -> list[tuple[Any, ...]]:
    """Examine at most `WALK` rows of `base` in order. Return the keys of the first `most` rows that are also in `narrowed`.

    The inner statement applies the limit before the condition: otherwise PostgreSQL could scan all rows.
    """
    try:
        walk = order.sort(base).annotate(is_wanted=_judgement(narrowed)).values_list(*order.names, "is_wanted")[:WALK]
        sql, parameters = walk.query.sql_with_params()
    except EmptyResultSet:
        # Django has found out without a query that no row matches, for example because a filter has an empty list of values.
        return []
    with connections[base.db].cursor() as cursor:
        cursor.execute(f"SELECT * FROM ({sql}) AS walk WHERE is_wanted LIMIT {most:d}", parameters)  # noqa: S608  # SQL from Django
        return [tuple(row[:-1]) for row in cursor.fetchall()]


def _narrowed(spec: Any, request: HttpRequest, rows: Rows) -> Rows:
    found = spec.queryset(request, rows)
    return rows if found is None else found


def is_served_by_index(model: type[models.Model], path: str, *, in_tenant: bool) -> bool:
    """Tell whether an index begins with the column of this lookup, or with the tenant and then that column."""
    column: Any = None
    for name in path.split("__"):
        if column is not None:
            model = column.related_model
        column = model._meta.pk if name == "pk" else model._meta.get_field(name)
    if column.unique or column.db_index:
        return True
    leading = [tuple(index.fields) for index in model._meta.indexes if not index.condition]
    leading += [tuple(one.fields) for one in model._meta.total_unique_constraints]
    tenants = ("tenant", "tenant_id")
    return any(
        fields[0] == column.name or (in_tenant and fields[0] in tenants and fields[1:2] == (column.name,)) for fields in leading if fields
    )


def _judgement(narrowed: QuerySet[Any, Any]) -> Any:
    """Return the condition that an examined row must meet.

    The condition uses only columns of the row if these suffice. If filters need other tables, it searches the filtered rows for the key of
    the row.
    """
    query = narrowed.order_by().query
    if query.where and all(name == query.get_meta().db_table for name, count in query.alias_refcount.items() if count):
        # SQL from Django, with its parameters separate.
        sql, parameters = query.get_compiler(connection=connections[DEFAULT_DB_ALIAS]).compile(query.where)
        return RawSQL(sql, parameters, BooleanField())  # noqa: S611  # nosec B611
    # Use a scalar subquery, because PostgreSQL could plan EXISTS as a hash of all matching rows.
    own = narrowed.order_by().filter(pk=OuterRef("pk")).annotate(found=Value(value=True)).values("found")
    return Subquery(own[:1])
