"""The log browser: indexed searches, keyset pages, and a page for each event.

The page of an event shows its changes, and a command that reads the stream from this event on.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.timezone import localtime

from events.admin.entities import DELETED, Entity, name_entities
from events.admin.event_page import EventPage
from events.admin.log_search import LogSearch, place_of
from events.log.browsing import LogPage, browse
from events.log.cursor import Cursor, CursorSealer
from events.log.stored_envelope import envelope_of, who_of
from events.models import Event, Head, LogEntry
from foundation.admin.badges import badge
from identity.admin.scope import tenant_in_scope
from identity.hosts import address_beside


class LogChangeList(ChangeList):
    """Replaces the rows, search and pages of Django's change list. Pages begin after a key: no query uses OFFSET or counts rows."""

    search: LogSearch
    page: LogPage

    def get_queryset(self, request: HttpRequest, *_arguments: Any, **_named: Any) -> Any:
        self.search = LogSearch(request.GET, label_suffix="")
        is_valid = self.search.is_valid()
        self.page = browse(self.search.question(tenant_in_scope(request)), place_of(request.GET)) if is_valid else LogPage([], None, None)
        self.filter_specs, self.has_filters, self.clear_all_filters_qs = [], False, "?"
        self.has_active_filters = not is_valid or self.search.is_used
        return self.root_queryset.none()

    def get_results(self, request: HttpRequest) -> None:
        self.result_list = self.page.rows
        self.result_count = self.full_result_count = len(self.page.rows)
        self.show_full_result_count = self.show_admin_actions = self.can_show_all = self.multi_page = False
        self.paginator = self.model_admin.get_paginator(request, self.root_queryset.none(), self.list_per_page)

    def address_of(self, **place: int | None) -> str:
        """Return the query string of another page of this search; empty if that page does not exist."""
        if None in place.values():
            return ""
        asked = {field: value for field, value in self.search.data.items() if field in self.search.fields and value}
        return f"?{urlencode({**asked, **place})}"


class LogEntryAdmin(EventPage[LogEntry]):
    """The log browser."""

    list_display = ("position", "recorded_at", "type", "entity", "size", "who", "tenant_id")
    list_display_links = ("position",)
    sortable_by = ()
    change_list_template = "admin/event_log.html"
    hidden_if_empty = ("who", *EventPage.hidden_if_empty)
    fieldsets = (
        (None, {"fields": ("entity_page", "others", "who", "time", "recorded_at", "position", "size", "tenant_id")}),
        ("Read the event stream from this event on", {"fields": ("cursor_before", "command"), "classes": ("collapse",)}),
    )
    readonly_fields = ("type", "entity_page", "others", "time", "size", "who", "cursor_before", "command")
    empty_text = "No events yet. Every change of a user, a connection, a group or an organization appears here within a second."

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[LogEntry]:
        return super().get_queryset(request).select_related("event")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LogChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> LogEntry:
        """Return the entry. Also set `read_at` to the host of the request, for the command that the page shows."""
        row: Any = super().get_object(request, object_id, from_field)
        row.read_at = request.get_host()
        return row  # type: ignore[no-any-return]

    def event_in(self, row: LogEntry) -> Event:
        return row.event

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist = super().get_changelist_instance(request)
        changelist.title = "Event log"
        name_entities(self.admin_site, request, changelist.result_list)
        return changelist

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        listed = getattr(response, "context_data", None)
        if listed and "cl" in listed:
            changes: LogChangeList = listed["cl"]
            listed["older_url"] = changes.address_of(before=changes.page.older)
            listed["newer_url"] = changes.address_of(after=changes.page.newer)
            listed["newest_url"] = changes.address_of() if changes.page.newer is not None else ""
        return response

    @admin.display(description="Event type")
    def type(self, row: LogEntry) -> str:
        return row.event.type

    @admin.display(description="Entity")
    def entity(self, row: LogEntry) -> str:
        """Link the name or the id of the entity to all its events."""
        entity: Entity = row.entity  # type: ignore[attr-defined]  # set by name_entities
        linked = format_html('<a href="?{}">{}</a>', urlencode({"entity": entity.root}), entity.text if entity.url else entity.root)
        return format_html('<div class="cell-lines">{} {}</div>', linked, badge(DELETED)) if entity.is_deleted else linked

    @admin.display(description="Happened at")
    def time(self, row: LogEntry) -> str:
        return localize(localtime(row.event.time))

    @admin.display(description="Size")
    def size(self, row: LogEntry) -> str:
        return filesizeformat(len(row.event.body))

    @admin.display(description="Who")
    def who(self, row: LogEntry) -> str:
        return who_of(envelope_of(row.event.body))

    @admin.display(description="Cursor before this event")
    def cursor_before(self, row: LogEntry) -> str:
        return _cursor_before(row)

    @admin.display(description="Command")
    def command(self, row: LogEntry) -> str:
        words = ["manage.py events tail", address_beside(getattr(row, "read_at", ""), row.tenant_id), f"--from {_cursor_before(row)}"]
        return format_html('<code class="command">{}</code>', " ".join(word for word in words if word))


def _cursor_before(row: LogEntry) -> str:
    epoch = Head.objects.filter(pk=row.tenant_id).values_list("epoch", flat=True).first() or 1
    return CursorSealer(settings.CURSOR_KEYS, tenant_id=row.tenant_id).seal(Cursor(epoch, row.position - 1))
