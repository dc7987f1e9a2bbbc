"""Keyset pages of a log, newest first, in both directions. The queries count no rows and use no OFFSET.

An index serves some conditions. All other conditions are checked row by row among at most `WALK` rows per page; if this limit ends the
search, the page reports that it is partial. So the cost of a page does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Model, Q, QuerySet

PAGE_ROWS = 50
WALK = 20_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63 - 1

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: directly before (older than) or after (newer than) the row of this time and key."""

    moment: datetime
    key: int
    is_newer: bool = False

    def written(self) -> str:
        """Return the place as text for a URL."""
        return f"{(self.moment - _EPOCH) // timedelta(microseconds=1)}.{self.key}"


def read_place(query: Any) -> Place | None:
    """Return the place in the URL parameter `before` or `after`; invalid text counts as no place."""
    for name in ("before", "after"):
        moment, _, key = str(query.get(name, "")).partition(".")
        if all(part.isascii() and part.isdigit() for part in (moment, key)) and len(moment) < 18 and len(key) < 20 and int(key) <= _LARGEST:
            return Place(_EPOCH + timedelta(microseconds=int(moment)), int(key), name == "after")
    return None


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[Row]):
    """Rows, newest first. `older` and `newer` are the places of the neighboring pages, empty at an end.

    `is_partial` means that the page is short because the search examined the maximum number of rows.
    """

    rows: Sequence[Row]
    older: str = ""
    newer: str = ""
    is_partial: bool = False


def page_of(rows: QuerySet[Row], place: Place | None, *, moment: str, further: Q | None = None) -> KeysetPage[Row]:
    """Return the page of `rows` at the place, ordered by the column `moment` and the key.

    The condition `further` is checked for each examined row.
    """
    is_newer = place is not None and place.is_newer
    order = (moment, "pk") if is_newer else (f"-{moment}", "-pk")
    walked = (rows if place is None else _from(rows, place, moment)).order_by(*order)
    asked = walked if not further else QuerySet(rows.model).filter(pk__in=met(walked[:WALK], further)).order_by(*order)
    found = list(asked[: PAGE_ROWS + 1])
    taken, is_full = found[:PAGE_ROWS], len(found) > PAGE_ROWS
    # The page after a partial page begins where the walk stopped.
    stopped = walked[WALK - 1 : WALK].first() if further and not is_full else None
    onward = _written(taken[-1] if is_full else stopped, moment)
    is_partial = not is_full and stopped is not None
    if place is None:
        return KeysetPage(taken, onward, "", is_partial)
    back = _written(taken[0], moment) if taken else place.written()
    return KeysetPage(taken[::-1], back, onward, is_partial) if is_newer else KeysetPage(taken, onward, back, is_partial)


def met(walk: QuerySet[Any], further: Q) -> list[Any]:
    """Return the keys of the rows in `walk` that fulfill `further`: at most one more than a page shows.

    The condition is checked while the rows are read. A second query with the keys of all rows would read each row again.
    """
    judged = walk.annotate(is_wanted=ExpressionWrapper(further, BooleanField())).values_list("pk", "is_wanted")
    sql, parameters = judged.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM ({sql}) AS walk (key, is_wanted) WHERE is_wanted LIMIT {PAGE_ROWS + 1:d}", parameters)  # noqa: S608  # SQL from Django
        return [key for key, _ in cursor.fetchall()]


def _from(rows: QuerySet[Row], place: Place, moment: str) -> QuerySet[Row]:
    """Return the rows beyond the place.

    Two conditions select these rows. The first is a range of times, which an index serves. The range includes the rows with exactly the
    time of the place, and another page has already shown some of them. The second condition drops the rows that another page
    has shown.
    """
    beyond = "gt" if place.is_newer else "lt"
    within = {f"{moment}__{beyond}e": place.moment}
    return rows.filter(Q(**{f"{moment}__{beyond}": place.moment}) | Q(**{f"pk__{beyond}": place.key}), **within)


def _written(row: Model | None, moment: str) -> str:
    return "" if row is None else Place(getattr(row, moment), row.pk).written()
