"""Reads pages of users that meet a condition, at a cost that does not depend on the planner's estimates.

For a frequent condition, walking the users in list order finds a page soon. For a rare condition, it is faster to collect the matches
through the condition's own indexes and sort them. The planner must guess the frequency, and a wrong guess costs seconds: the planner has no
statistics about a key of JSON or about one tenant. So this module reads the first `WALK` rows, and decides by the matches among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

# Number of rows of the first walk. The walk takes a few milliseconds, and contains all users of most tenants.
WALK = 3_000
# A condition is frequent if at least one in this number of walked rows matches. For a frequent condition the walk continues. For a
# rarer condition the matches are collected.
_FREQUENT = 100
# The longest walk for a count of the matches. If the walk had to be longer, a count with the condition's own index would be faster.
_COUNT_WALK = 20_000
# Maximum length of a walk, as a multiple of its estimated length. At this length, the walk stops, and the matches are collected instead.
_MARGIN = 4

Rows = QuerySet[Any, Any]


class ListOrder(Protocol):
    """The order of a list, as `foundation.api.paging` reads it from a request."""

    @property
    def expression(self) -> Any: ...
    @property
    def is_descending(self) -> bool: ...
    @property
    def has_gaps(self) -> bool: ...
    @property
    def is_indexed(self) -> bool: ...
    def apply(self, rows: Rows) -> Rows: ...


@dataclass
class SearchReading:
    """Reads the rows of one list response that meet `condition`: first its page, then its total."""

    condition: Q
    # Whether an index finds at most a few rows, so that no walk is needed.
    is_selective: bool = False
    _total: int | None = None
    _least: int = 0
    _shown: int = 0
    _met: int = 0
    _looked_at: int = 0

    def page(self, rows: Rows, order: ListOrder, start: int, size: int) -> list[Any]:
        """Return the rows of one page, in the order of the list."""
        # One row more than the page, to learn whether rows follow.
        keys = self._keys(_plain(rows), order, start, size + 1)
        if self._total is None and len(keys) <= size and (keys or start == 0):
            self._total = start + len(keys)
        # An empty page starts past the last row. `total` then counts at least up to this start, and so counts all rows.
        self._least, self._shown = (start + len(keys), 0) if keys else (0, start)
        found = {row.pk: row for row in rows.filter(pk__in=keys[:size])}
        return [found[key] for key in keys[:size] if key in found]

    def total(self, rows: Rows, order: ListOrder) -> int:
        """Return the number of rows: exact up to `USER_SEARCH_COUNT_LIMIT`. Above this limit, the result may be the limit plus one.

        The result is never less than the number of rows up to the end of the page, plus one if more rows follow. So a client that reads the
        total again with each page, and stops when it has read that many rows, misses no row.
        """
        if self._total is not None:
            return self._total
        limit = settings.USER_SEARCH_COUNT_LIMIT
        return max(self._counted(_plain(rows), order, limit and max(limit, self._shown)), self._least)

    def _keys(self, rows: Rows, order: ListOrder, start: int, size: int) -> list[Any]:
        """Return the keys of the rows from `start` on.

        1. If the order has no index, or an index finds at most a few rows, go to step 4.
        2. Walk the first `WALK` rows in order. If they contain the page, or there are no further rows, return the page.
        3. If the matches are frequent, walk up to the estimated length times a margin. If these rows contain the page, return it.
        4. Collect the keys of all matches through the indexes of the condition, and sort them.
        """
        if self.is_selective or not order.is_indexed:
            return self._collected(rows, order, start, size)
        found, is_whole = self._walked(rows, order, walk=WALK, size=start + size)
        self._met, self._looked_at = len(found), found[-1][1] if len(found) == start + size else WALK
        if is_whole or len(found) == start + size:
            return [key for key, _ in found[start:]]
        if self._met * _FREQUENT >= WALK:
            further = (start + size) * WALK * _MARGIN // self._met
            found, _ = self._walked(rows, order, walk=further, size=start + size)
            if len(found) == start + size:
                return [key for key, _ in found[start:]]
        return self._collected(rows, order, start, size)

    def _walked(self, rows: Rows, order: ListOrder, *, walk: int, size: int) -> tuple[list[tuple[Any, int]], bool]:
        """Return two values: the matching keys among the first `walk` rows, each with its position in the walk; and whether there are no
        further rows.

        The condition is checked outside the limited inner statement, so the planner cannot replace the walk by a plan for the condition.
        """
        sql, parameters = self._judged(order.apply(rows))[: walk + 1].query.sql_with_params()
        # Django generated the inner statement. All values from a query are parameters.
        numbered = f"SELECT key, row_number() OVER () AS place, is_wanted FROM ({sql}) AS walk (key, is_wanted)"  # noqa: S608
        asked = f"SELECT key, place FROM ({numbered}) AS numbered WHERE is_wanted OR place > %s LIMIT %s"  # noqa: S608
        found = _fetched(asked, [*parameters, walk, size])
        is_whole = len(found) < size and not (found and found[-1][1] > walk)
        return [(key, place) for key, place in found if place <= walk], is_whole

    def _collected(self, rows: Rows, order: ListOrder, start: int, size: int) -> list[Any]:
        """Return the keys through the condition's own indexes. OFFSET 0 keeps the planner from using an index of the order."""
        expression = F(order.expression) if isinstance(order.expression, str) else order.expression
        met = rows.filter(self.condition).annotate(sort_key=expression).values_list("pk", "sort_key")
        sql, parameters = met.query.sql_with_params()
        way = "DESC" if order.is_descending else "ASC"
        place = f"sort_key {way} {'NULLS LAST' if order.has_gaps else ''}, key {way}"
        # The sort reads every matching row anyway, so the exact count costs nothing extra.
        ordered = f"SELECT key, count(*) OVER () FROM ({sql} OFFSET 0) AS met (key, sort_key) ORDER BY {place} OFFSET %s LIMIT %s"  # noqa: S608
        found = _fetched(ordered, [*parameters, start, size])
        if found:
            self._total = found[0][1]
        return [key for key, _ in found]

    def _counted(self, rows: Rows, order: ListOrder, limit: int) -> int:
        met = rows.filter(self.condition).values("pk")
        if not limit:
            return met.count()
        expected = (limit + 1) * self._looked_at // max(self._met, 1)
        if 0 < expected <= _COUNT_WALK and order.is_indexed:
            sql, parameters = self._judged(order.apply(rows))[: 2 * expected].query.sql_with_params()
            walk = f"SELECT key FROM ({sql}) AS walk (key, is_wanted) WHERE is_wanted LIMIT %s"  # noqa: S608
            counted: int = _fetched(f"SELECT count(*) FROM ({walk}) AS met", [*parameters, limit + 1])[0][0]  # noqa: S608
            if counted > limit:
                return counted
        return met[: limit + 1].count()

    def _judged(self, rows: Rows) -> Rows:
        judged: Rows = rows.annotate(is_wanted=ExpressionWrapper(self.condition, BooleanField())).values_list("pk", "is_wanted")
        return judged


def _plain(rows: Rows) -> Rows:
    return rows.select_related(None).prefetch_related(None).order_by()


def _fetched(sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
