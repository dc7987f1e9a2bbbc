"""Pages through a list of any length at a limited cost: the paginator stops counting rows at a limit."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db import models
from django.utils.functional import cached_property

COUNT_LIMIT = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # the class is not generic at run time
    """Counts at most `COUNT_LIMIT` rows. Rows beyond the limit have no page number; readers find them with a filter or a search."""

    @cached_property
    def count(self) -> int:
        return min(self._bounded, COUNT_LIMIT)

    @property
    def is_truncated(self) -> bool:
        """Whether there are more rows than were counted."""
        return self._bounded > COUNT_LIMIT

    @cached_property
    def _bounded(self) -> int:
        rows = self.object_list
        return bounded_count(rows) if isinstance(rows, models.QuerySet) else len(rows)


def bounded_count(rows: models.QuerySet[Any], limit: int = COUNT_LIMIT) -> int:
    """Return the number of rows, or `limit` + 1 if the query has more than `limit` rows.

    The query keeps its ordering: PostgreSQL then reads the index of this ordering and stops at the limit.
    """
    return rows.values("pk")[: limit + 1].count()
