"""Reads the log for the admin, newest first and one page at a time in both directions. Filters by type, entity, position or time.

Pages use keyset paging and count no rows, so the cost does not grow with the log. A search without a suitable index examines at most
`WALK` entries for each page. If this limit ends the search, the page is marked as partial, and contains the key at which the next page
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import F, Max, Min, OuterRef, QuerySet, Subquery

from events.models import Event, LogEntry

PAGE_ROWS = 50
WALK = 20_000

Rows = QuerySet[Any, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """The conditions of a search.

    If `tenant_id` is None, all tenants match. If `roots` is None, every entity matches; if `roots` is empty, no
    entity matches.
    """

    tenant_id: str | None
    type: str = ""
    roots: tuple[str, ...] | None = None
    event_id: str = ""
    first: int | None = None
    last: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The start of a page: its entries are older than the entry with this key or, if `is_newer`, newer than this entry."""

    key: int
    is_newer: bool = False


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries with their events, newest first. `older` and `newer` are the keys of the next pages, or None if no such page exists.

    `is_partial` means that the page is short because the search examined the maximum number of entries.
    """

    rows: list[LogEntry]
    older: int | None
    newer: int | None
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class _Walk:
    """The rows to examine, in the order of `key`, as an index returns them. `also` adds the conditions that the index does not cover."""

    rows: Rows
    key: str
    also: Callable[[Rows], Rows] | None = None


def browse(question: Question, place: Place | None = None) -> LogPage:
    """Return one page of the search."""
    walk = _walk_of(_placed(question))
    is_newer = place is not None and place.is_newer
    found, stopped_at = _found(walk, place, is_newer=is_newer)
    taken, is_full = found[:PAGE_ROWS], len(found) > PAGE_ROWS
    # The page after a partial page begins where the search stopped.
    onward = taken[-1][1] if is_full else stopped_at
    is_partial = not is_full and stopped_at is not None
    entries = _entries(pk for pk, _ in taken)
    if place is None:
        return LogPage(entries, onward, None, is_partial)
    if is_newer:
        return LogPage(entries[::-1], taken[0][1] if taken else place.key + 1, onward, is_partial)
    return LogPage(entries, onward, taken[0][1] if taken else place.key - 1, is_partial)


def _placed(question: Question) -> Question:
    """Replace `since` and `until` by positions, with one lookup each: recording times never decrease in a log.

    A search over all tenants is returned unchanged.
    """
    if question.tenant_id is None or (question.since is None and question.until is None):
        return question
    log = LogEntry.objects.filter(tenant_id=question.tenant_id)
    first, last = question.first, question.last
    if question.since is not None:
        found = log.filter(recorded_at__gte=question.since).order_by("recorded_at", "position")
        # If every entry is older than the start of the time range, use a position that no entry has.
        position = found.values_list("position", flat=True).first()
        first = max(first or 0, _NONE if position is None else position)
    if question.until is not None:
        found = log.filter(recorded_at__lte=question.until).order_by("-recorded_at", "-position")
        position = found.values_list("position", flat=True).first() or 0
        last = position if last is None else min(last, position)
    return replace(question, first=first, last=last, since=None, until=None)


_NONE = 2**63 - 1


def _walk_of(question: Question) -> _Walk:
    """Choose the index that leaves the fewest rows to examine."""
    log = LogEntry.objects.all() if question.tenant_id is None else LogEntry.objects.filter(tenant_id=question.tenant_id)
    if question.event_id:
        return _Walk(log.filter(pk__in=Event.objects.filter(event_id=question.event_id).values("pk")), "pk")
    if question.tenant_id is None:
        return _walk_over_all(log, question)
    events = Event.objects.filter(tenant_id=question.tenant_id)
    has_range = question.first is not None or question.last is not None
    if question.roots is not None:
        # For one entity, the index returns the rows in order. The rows of several entities must be sorted. This is cheap, because a search
        # has several entities only if it is a search by email address, and an address matches few users.
        own = events.filter(root=question.roots[0]) if len(question.roots) == 1 else events.filter(root__in=question.roots)
        return _Walk(own, "pk", _also(type=question.type, log_range=(question.first, question.last)))
    if question.type and not has_range:
        return _Walk(events.filter(type=question.type), "pk")
    return _Walk(_within(log, question.first, question.last), "position", _also(type=question.type, is_log=True))


def _walk_over_all(log: Rows, question: Question) -> _Walk:
    """Examine the newest entries of all tenants in the order of their keys, because every other index begins with the tenant."""

    def narrowed(rows: Rows) -> Rows:
        for column, value in (("recorded_at__gte", question.since), ("recorded_at__lte", question.until)):
            rows = rows if value is None else rows.filter(**{column: value})
        # Compare an expression, so that PostgreSQL does not use the index on `position`: without a tenant, it would scan the whole index.
        rows = _within(rows.alias(place=F("position") + 0), question.first, question.last, column="place")
        rows = _of_event(rows, "type", [question.type]) if question.type else rows
        return rows if question.roots is None else _of_event(rows, "root", question.roots)

    is_plain = question == Question(None)
    return _Walk(log, "pk", None if is_plain else narrowed)


def _also(*, type: str, log_range: tuple[int | None, int | None] = (None, None), is_log: bool = False) -> Callable[[Rows], Rows] | None:
    """Return the conditions on log rows, or on events, that the index does not cover; None if the index covers all conditions."""
    if not type and log_range == (None, None):
        return None

    def narrowed(rows: Rows) -> Rows:
        if log_range != (None, None):
            place = LogEntry.objects.filter(pk=OuterRef("pk")).values("position")
            rows = _within(rows.alias(position=Subquery(place)), *log_range)
        if not type:
            return rows
        return _of_event(rows, "type", [type]) if is_log else rows.filter(type=type)

    return narrowed


def _of_event(rows: Rows, column: str, values: Any) -> Rows:
    # Use a subquery, which does one lookup per examined entry. PostgreSQL could plan a join as a scan of all events.
    wanted = Event.objects.filter(pk=OuterRef("pk")).values(column)
    found: Rows = rows.alias(**{f"event_{column}": Subquery(wanted)}).filter(**{f"event_{column}__in": list(values)})
    return found


def _within(rows: Rows, first: int | None, last: int | None, *, column: str = "position") -> Rows:
    rows = rows if first is None else rows.filter(**{f"{column}__gte": first})
    return rows if last is None else rows.filter(**{f"{column}__lte": last})


def _found(walk: _Walk, place: Place | None, *, is_newer: bool) -> tuple[list[tuple[int, int]], int | None]:
    """Return (primary key, order key) of the found rows, at most one more than a page, and the order key at which the search stopped.

    The second value is None if the search examined all rows.
    """
    rows = walk.rows.order_by(walk.key if is_newer else f"-{walk.key}")
    onward = f"{walk.key}__gt" if is_newer else f"{walk.key}__lt"
    if place is not None:
        rows = rows.filter(**{onward: place.key})
    if walk.also is None:
        return list(rows.values_list("pk", walk.key)[: PAGE_ROWS + 1]), None
    reached = rows.values(walk.key)[:WALK].aggregate(low=Min(walk.key), high=Max(walk.key))
    if reached["low"] is None:
        return [], None
    last = reached["high" if is_newer else "low"]
    # The ordering makes PostgreSQL use the index; `exists` would drop the ordering and could scan the table.
    stopped_at = last if rows.filter(**{onward: last}).values_list("pk")[:1] else None
    window = rows.filter(**{f"{walk.key}__gte": reached["low"], f"{walk.key}__lte": reached["high"]})
    return list(walk.also(window).values_list("pk", walk.key)[: PAGE_ROWS + 1]), stopped_at


def _entries(pks: Any) -> list[LogEntry]:
    """Return the entries in the order of `pks`. A key without an entry is left out."""
    wanted = list(pks)
    found = LogEntry.objects.filter(pk__in=wanted).select_related("event").in_bulk()
    return [found[pk] for pk in wanted if pk in found]
