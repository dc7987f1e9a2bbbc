"""Pages of a list of any length at a bounded price: counting stops at a limit."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db import models
from django.utils.functional import cached_property

COUNT_LIMIT = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # it is no generic class at run time
    """Counts at most `COUNT_LIMIT` rows; what lies beyond is found by filters, not by turning pages."""

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
    """Return how many rows there are, `limit` + 1 standing for more than that.

    The order of the rows is kept: it leads the database to the index of that order and no further than the limit.
    """
    return rows.values("pk")[: limit + 1].count()
