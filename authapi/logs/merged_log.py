"""Reading both tables behind `GET /logs` as one list, ordered by time and then id.

Each table gives as many lines as the page could need, in the order of an index of its own, and the database merges the two. A
table that cannot hold what is asked for, by the type of its lines, is left out.
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
# A line has the time of its making and is seen with the commit, a little later. A reader that follows the log must not pass it by.
_SETTLED = timedelta(seconds=5)
# A transaction that runs longer than this delays no reader any more.
_LONGEST_TRANSACTION = timedelta(minutes=10)
_OLDEST_WRITER = (
    "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' "
    "AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class MergedLog:
    """The lines of the current tenant that meet a condition. Slices and counts as a query does; `created_at` is their moment."""

    condition: Q

    def page(self, start: int, size: int, *, is_descending: bool) -> list[Line]:
        """Return `size` lines from place `start` on."""
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
    """Return the line of the current tenant with this id, None where there is none."""
    found = MergedLog(Q(pk=log_id)).page(0, 1, is_descending=True)
    return found[0] if found else None


def after(known: Line) -> Q:
    """Return the condition of the lines after a known one, oldest first."""
    moment = known["created_at"]
    # The first condition alone is a range of the index; the second drops what was already shown of that very moment.
    return Q(Q(created_at__gt=moment) | Q(pk__gt=known["id"]), created_at__gte=moment)


def settled_until(now: datetime, oldest_writer: datetime | None) -> datetime:
    """Return the moment before which no other line can appear any more.

    A line may be made long before its transaction ends. So lines younger than the oldest transaction that writes wait for it,
    for ten minutes at most.
    """
    settled = now - _SETTLED
    return settled if oldest_writer is None else min(settled, max(oldest_writer - _SETTLED, now - _LONGEST_TRANSACTION))


def oldest_writer() -> datetime | None:
    """Return when the oldest of the transactions began that write to the database now, None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_WRITER)
        found: datetime | None = cursor.fetchone()[0]
    return found
