"""Pages of a log, newest first, from wherever one stands: nothing is counted and no row is reached by skipping others.

What an index serves narrows the walk itself; everything else is judged row by row among `WALK` rows a page, which then says
that it ended there. So a page costs the same in a log of any length.
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
    """Where a page begins: right before (older than) or right after (newer than) the row of this time and key."""

    moment: datetime
    key: int
    is_newer: bool = False

    def written(self) -> str:
        """Return the place as it stands in an address."""
        return f"{(self.moment - _EPOCH) // timedelta(microseconds=1)}.{self.key}"


def read_place(query: Any) -> Place | None:
    """Return the place that `before` or `after` of an address names; what is no place counts as none."""
    for name in ("before", "after"):
        moment, _, key = str(query.get(name, "")).partition(".")
        if all(part.isascii() and part.isdigit() for part in (moment, key)) and len(moment) < 18 and len(key) < 20 and int(key) <= _LARGEST:
            return Place(_EPOCH + timedelta(microseconds=int(moment)), int(key), name == "after")
    return None


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[Row]):
    """Rows, newest first. `older` and `newer` are the places to go on from, empty at an end.

    `is_partial` tells that the page is short because it has looked at as many rows as one page does.
    """

    rows: Sequence[Row]
    older: str = ""
    newer: str = ""
    is_partial: bool = False


def page_of(rows: QuerySet[Row], place: Place | None, *, moment: str, further: Q | None = None) -> KeysetPage[Row]:
    """Return the page of `rows` at the place, ordered by the column `moment` and the key; `further` is asked of each row."""
    is_newer = place is not None and place.is_newer
    order = (moment, "pk") if is_newer else (f"-{moment}", "-pk")
    walked = (rows if place is None else _from(rows, place, moment)).order_by(*order)
    asked = walked if not further else QuerySet(rows.model).filter(pk__in=met(walked[:WALK], further)).order_by(*order)
    found = list(asked[: PAGE_ROWS + 1])
    taken, is_full = found[:PAGE_ROWS], len(found) > PAGE_ROWS
    # A page that the walk has ended goes on where the walk has stopped.
    stopped = walked[WALK - 1 : WALK].first() if further and not is_full else None
    onward = _written(taken[-1] if is_full else stopped, moment)
    is_partial = not is_full and stopped is not None
    if place is None:
        return KeysetPage(taken, onward, "", is_partial)
    back = _written(taken[0], moment) if taken else place.written()
    return KeysetPage(taken[::-1], back, onward, is_partial) if is_newer else KeysetPage(taken, onward, back, is_partial)


def met(walk: QuerySet[Any], further: Q) -> list[Any]:
    """Return the keys of the rows of a walk, which has a limit, that fulfil `further`: as many as a page shows and one.

    Each is judged where the walk meets it; asked for by key, every one of them would be looked up a second time.
    """
    judged = walk.annotate(is_wanted=ExpressionWrapper(further, BooleanField())).values_list("pk", "is_wanted")
    sql, parameters = judged.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM ({sql}) AS walk (key, is_wanted) WHERE is_wanted LIMIT {PAGE_ROWS + 1:d}", parameters)  # noqa: S608  # Django's own
        return [key for key, _ in cursor.fetchall()]


def _from(rows: QuerySet[Row], place: Place, moment: str) -> QuerySet[Row]:
    """Narrow to what lies beyond the place: the range is the index's, the rest drops what was shown of that very moment."""
    beyond = "gt" if place.is_newer else "lt"
    within = {f"{moment}__{beyond}e": place.moment}
    return rows.filter(Q(**{f"{moment}__{beyond}": place.moment}) | Q(**{f"pk__{beyond}": place.key}), **within)


def _written(row: Model | None, moment: str) -> str:
    return "" if row is None else Place(getattr(row, moment), row.pk).written()
