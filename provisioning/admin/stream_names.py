"""Names of streams for rows that store only the stream id, because the stream may be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from events.models import EventStream
from foundation.admin.list_cells import two_lines
from foundation.admin.list_filters import RecentValuesFilter
from foundation.admin.panels import Cell


def _names_of(stream_ids: set[str]) -> dict[str, str]:
    """Return the names of the streams that exist. A stream without a name has its id as the name."""
    found = EventStream.all_tenants.filter(pk__in=stream_ids).values_list("pk", "name")
    return {stream_id: name or stream_id for stream_id, name in found}


def _deleted(stream_id: str) -> str:
    return f"{stream_id} (deleted)"


def page_of_stream(site: admin.AdminSite, stream_id: str) -> str:
    return reverse(f"{site.name}:events_eventstream_change", args=(quote(stream_id),))


def stream_cells(site: admin.AdminSite, request: HttpRequest, *, tenant_id: str, stream_ids: Iterable[str]) -> dict[str, Cell]:
    """Return the cell of each stream of a tenant, with one query.

    The cell has the name of the stream. If the account may see streams, the name is a link to the page of the stream.
    """
    wanted = set(stream_ids)
    names = dict(EventStream.objects.of(tenant_id).filter(pk__in=wanted).values_list("pk", "name"))
    may_see = site.get_model_admin(EventStream).has_view_permission(request)
    return {
        stream_id: Cell(names[stream_id] or stream_id, page_of_stream(site, stream_id) if may_see else "")
        if stream_id in names
        else Cell(_deleted(stream_id))
        for stream_id in wanted
    }


class NamesStreams:
    """Adds the column `stream` to an admin class whose rows have a `stream_id`, with one query per page of a list."""

    # The heading of a row's page. The name of the stream replaces the braces. If this text is empty, the page has the usual heading.
    stream_heading = ""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist: ChangeList = super().get_changelist_instance(request)  # type: ignore[misc]  # Django's class comes after this one
        rows: Any = changelist.result_list
        names = _names_of({row.stream_id for row in rows})
        for row in rows:
            row.stream_name = names.get(row.stream_id) or _deleted(row.stream_id)
        return changelist

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row. Add the page of its stream to the row if the account may see this page."""
        row: Any = super().get_object(request, object_id, from_field)  # type: ignore[misc]  # Django's class comes after this one
        site: admin.AdminSite = self.admin_site  # type: ignore[attr-defined]
        if row is not None and site.get_model_admin(EventStream).has_view_permission(request):
            row.stream_page = page_of_stream(site, row.stream_id)
        return row

    def heading_of(self, row: Any) -> str:
        if not self.stream_heading:
            return str(super().heading_of(row))  # type: ignore[misc]  # the class of row pages comes after this one
        return self.stream_heading.format(_names_of({row.stream_id}).get(row.stream_id) or _deleted(row.stream_id))

    @admin.display(description="Stream")
    def stream(self, row: Any) -> str:
        """Return the name for a list. For the page of one row, return the name with the id, linked to the page of the stream."""
        if hasattr(row, "stream_name"):
            return str(row.stream_name)
        name = _names_of({row.stream_id}).get(row.stream_id)
        if name is None:
            return _deleted(row.stream_id)
        text = name if name == row.stream_id else f"{name} ({row.stream_id})"
        return format_html('<a href="{}">{}</a>', row.stream_page, text) if hasattr(row, "stream_page") else text

    @admin.display(description="Event")
    def event_of_stream(self, row: Any) -> str:
        """Return the event type of a row, with the name of the stream below it."""
        return two_lines(row.event_type, self.stream(row))


def attempts_line(count: int) -> str:
    """Return the number of attempts in words; empty without an attempt."""
    return f"{count} attempt{'' if count == 1 else 's'}" if count else ""


def failure_line(row: Any) -> str:
    """Return the kind of an error, the status of the response and the number of attempts on one line."""
    status = f"HTTP {row.error_status}" if row.error_status else ""
    return ", ".join(part for part in (error_kind(row), status, attempts_line(row.attempts)) if part)


def error_kind(row: Any) -> str:
    """Return the label of the error class up to the colon. The filter and the page of the row show the whole label."""
    return str(row.get_error_class_display()).partition(":")[0]


class StreamFilter(RecentValuesFilter):
    """A filter by the id of a stream, which shows the name of each stream."""

    title = "stream"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = "stream"
        self._names = _names_of({str(value) for value in self.lookup_choices})

    def choices(self, changelist: ChangeList) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": self._names.get(str(choice["display"]), choice["display"])}
