"""Reads the two tables of `GET /logs` as one list, ordered by time and then by id.

Each table returns as many lines as the page may need, in the order of its own index, and the database merges the lines. A table whose line
types cannot match the condition is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet, Value

from authapi.logs.query import may_hold
from authapi.models import AdministrativeLine, SignIn
from authapi.services.administrative_log import TYPES

Line = dict[str, Any]
COLUMNS = (
    "id", "created_at", "type", "description", "client_id", "client_name", "connection", "ip", "user_id", "user_name", "user_agent",
    "scope", "details",
)  # fmt: skip
# Lines younger than this are withheld. A line becomes visible only at its commit, shortly after its creation time. Without this delay, a
# client that follows `GET /logs` could skip the line.
_SETTLED = timedelta(seconds=5)
# A transaction that has run for more than this time does not delay readers any more.
_LONGEST_TRANSACTION = timedelta(minutes=10)
_OLDEST_WRITER = (
    "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' "
    "AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class MergedLog:
    """The lines of the current tenant that meet a condition. Pages and totals can be read from it. `created_at` is the time of a line."""

    condition: Q

    def page(self, start: int, size: int, *, is_descending: bool) -> list[Line]:
        """Return `size` lines, starting at index `start`."""
        order = ("-created_at", "-id") if is_descending else ("created_at", "id")
        found = [rows.order_by(*order)[: start + size] for rows in self._tables()]
        if not found:
            return []
        merged = found[0] if len(found) == 1 else found[0].union(*found[1:], all=True).order_by(*order)
        return list(merged[start : start + size])

    def total(self) -> int:
        """Return the number of lines."""
        return sum(rows.count() for rows in self._tables())

    def _tables(self) -> Sequence[QuerySet[Any, Line]]:
        found: list[QuerySet[Any, Line]] = []
        if may_hold(self.condition, lambda code: code not in TYPES, lambda _: True):
            found.append(SignIn.objects.filter(self.condition).annotate(scope=Value("")).values(*COLUMNS))
        if may_hold(self.condition, lambda code: code in TYPES, lambda prefix: any(code.startswith(prefix) for code in TYPES)):
            found.append(AdministrativeLine.objects.filter(self.condition).values(*COLUMNS))
        return found


def line_at(log_id: str) -> Line | None:
    """Return the line of the current tenant with this id; None if no such line exists."""
    found = MergedLog(Q(pk=log_id)).page(0, 1, is_descending=True)
    return found[0] if found else None


def after(known: Line) -> Q:
    """Return the condition for the lines after a known line, in the order of time and id."""
    moment = known["created_at"]
    # `created_at__gte` selects a range of the index. The other condition leaves out lines of the same time that were already shown.
    return Q(Q(created_at__gt=moment) | Q(pk__gt=known["id"]), created_at__gte=moment)


def settled_until(now: datetime, oldest_writer: datetime | None) -> datetime:
    """Return the time before which no new line can appear.

    A line may be created long before its transaction commits. Lines newer than the oldest writing transaction are therefore withheld,
    for at most ten minutes.
    """
    settled = now - _SETTLED
    return settled if oldest_writer is None else min(settled, max(oldest_writer - _SETTLED, now - _LONGEST_TRANSACTION))


def oldest_writer() -> datetime | None:
    """Return the start of the oldest transaction that is writing to the database now; None if no transaction is writing."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_WRITER)
        found: datetime | None = cursor.fetchone()[0]
    return found
