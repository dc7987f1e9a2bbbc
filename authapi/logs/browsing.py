"""Reads the sign-in log for the admin: newest line first, one page at a time. A page can start at any line.

A page needs no count of lines and no offset, so its cost does not depend on the number of lines in the sign-in log. The conditions on the
tenant, on a user id of this tenant and on the times are index ranges. All other conditions are checked on at most `WALK` lines per page;
for a page that reaches this limit, `is_partial` is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet

from authapi.models import SignIn
from foundation.database.keyset_pages import met

PAGE_ROWS = 50
WALK = 20_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """The conditions of a search. An empty condition matches everything. If `tenant_id` is None, the search includes all tenants."""

    tenant_id: str | None
    type: str = ""
    is_success: bool | None = None
    user: str = ""
    client_id: str = ""
    connection: str = ""
    ip: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The start of a page: the time and the id of a line. The page contains the next lines that are older than this line, or, with
    `is_newer`, the next lines that are newer.
    """

    created_at: datetime
    key: str
    is_newer: bool = False

    def written(self) -> str:
        """Return the place as text for a URL."""
        return f"{(self.created_at - _EPOCH) // timedelta(microseconds=1)}.{self.key}"


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines, newest first. `older` and `newer` are the places of the neighboring pages. A place is empty if no such page exists.

    `is_partial` means that the page is short because the search has checked the maximum number of lines.
    """

    rows: list[SignIn]
    older: str = ""
    newer: str = ""
    is_partial: bool = False


def read_place(text: str, *, is_newer: bool) -> Place | None:
    """Read a place from its text in a URL. Return None for an invalid text."""
    moment, _, key = text.partition(".")
    if not (moment.isascii() and moment.isdigit() and len(moment) < 18 and 0 < len(key) <= 32 and key.isascii() and key.isprintable()):
        return None
    return Place(_EPOCH + timedelta(microseconds=int(moment)), key, is_newer)


def browse(question: Question, place: Place | None = None) -> LogPage:
    """Return one page of the matching lines."""
    is_newer = place is not None and place.is_newer
    walked = _walked(question, place)
    further = _further(question)
    asked = _lines(met(walked[:WALK], further), is_newer=is_newer) if further else walked
    # The list for all tenants shows the tenant of each line.
    found = list(asked.select_related("tenant")[: PAGE_ROWS + 1])
    taken, is_full = found[:PAGE_ROWS], len(found) > PAGE_ROWS
    # If the page reached the limit of checked lines, the next page continues at the last checked line.
    stopped = walked[WALK - 1 : WALK].first() if further and not is_full else None
    onward = _written(taken[-1]) if is_full else _written(stopped)
    is_partial = not is_full and stopped is not None
    if place is None:
        return LogPage(taken, onward, "", is_partial)
    back = _written(taken[0]) if taken else place.written()
    return LogPage(taken[::-1], back, onward, is_partial) if is_newer else LogPage(taken, onward, back, is_partial)


def _walked(question: Question, place: Place | None) -> QuerySet[SignIn]:
    """Return the lines that follow the place, nearest line first. Without a place, return all lines, newest first."""
    # An operator who has not chosen a tenant sees all tenants.
    rows = SignIn.all_tenants.all() if question.tenant_id is None else SignIn.objects.of(question.tenant_id)
    if "|" in question.user and question.tenant_id is not None:
        rows = rows.filter(user_id=question.user)
    if question.since is not None:
        rows = rows.filter(created_at__gte=question.since)
    if question.until is not None:
        rows = rows.filter(created_at__lte=question.until)
    if place is None:
        return rows.order_by("-created_at", "-pk")
    # The index serves the condition on the time. The other condition drops lines of the same time that were already shown.
    moment, key = place.created_at, place.key
    if place.is_newer:
        return rows.filter(Q(created_at__gt=moment) | Q(pk__gt=key), created_at__gte=moment).order_by("created_at", "pk")
    return rows.filter(Q(created_at__lt=moment) | Q(pk__lt=key), created_at__lte=moment).order_by("-created_at", "-pk")


def _further(question: Question) -> Q:
    """Return the conditions that are checked line by line. An empty `Q` if no such condition is set."""
    found = Q()
    for name in ("type", "client_id", "connection", "ip"):
        if getattr(question, name):
            found &= Q(**{name: getattr(question, name)})
    if question.is_success is not None:
        found &= Q(is_success=question.is_success)
    if question.user and "|" not in question.user:
        found &= Q(user_name__iexact=question.user)
    elif question.user and question.tenant_id is None:
        # A search for a user in all tenants uses no index, because the index for users starts with the tenant.
        found &= Q(user_id=question.user)
    return found


def _lines(keys: list[str], *, is_newer: bool) -> QuerySet[SignIn]:
    order = ("created_at", "pk") if is_newer else ("-created_at", "-pk")
    # This query needs no tenant, because the keys come from rows that are already filtered by tenant.
    return SignIn.all_tenants.filter(pk__in=keys).order_by(*order)


def _written(row: SignIn | None) -> str:
    return "" if row is None else Place(row.created_at, row.pk).written()
