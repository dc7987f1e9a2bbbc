"""Read-only admin pages of stored rows other than log entries: events, the outbox, marks, event streams, and the heads of logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from events.admin.entities import NamesEntities
from events.admin.event_links import log_of
from events.admin.event_page import EventPage
from events.admin.live import PERMISSION
from events.models import Event, EventStream, Head, LogEntry, Mark, Outbox
from foundation.admin.keyset_list import FOUND
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.scope import tenant_in_scope
from identity.admin.tenant_scope import ReadOnlyAdmin

# If no tenant is chosen, a search by entity reads only this many of the newest events: it cannot use the index by entity, which begins
# with the tenant.
_NEWEST = 10_000
_ENTITY_EVENTS = 1_000
_PANEL_EVENTS = 20


def _events_named(term: str, tenant: str | None) -> models.QuerySet[Any, Any]:
    """Return the key of the event with this id, or the keys of the newest events of this entity. Both searches use an index.

    The index by entity begins with the tenant. If no tenant is chosen, only the newest events are searched.
    """
    if term.startswith("evt_"):
        return Event.objects.filter(event_id=term).values("pk")
    events = Event.objects.filter(root=term)
    if tenant is None:
        newest = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        return events.filter(pk__gt=newest - _NEWEST).values("pk")
    return events.filter(tenant_id=tenant).order_by("-pk").values("pk")[:_ENTITY_EVENTS]


class EventAdmin(NamesEntities, EventPage[Event]):
    """Lists every stored event, with or without a position."""

    id_field = "event_id"
    entity_column = "root"
    list_display = ("event_id", "type", "about_entity", "time", "tenant_id")
    sortable_by = ()
    search_fields = ("event_id",)
    search_help_text = "An event id (evt_…), or an entity, such as user:database|…."
    fields = ("entity_page", "others", "time", "place", "tenant_id")
    readonly_fields = ("entity_page", "others", "place")
    empty_text = "No events yet. Each change of a user, group, organization or connection becomes an event."

    def event_in(self, row: Event) -> Event:
        return row

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Within a tenant, sort in the order of the index by entity. The log browser is the page that shows the newest events first.
        return ("tenant_id", "root", "pk") if self.is_bound(request) else ("-pk",)

    def found_by_index(self, request: HttpRequest, rows: models.QuerySet[Event], term: str) -> models.QuerySet[Event] | None:
        return rows.filter(pk__in=_events_named(term, tenant_in_scope(request)))

    @admin.display(description="Event log")
    def place(self, row: Event) -> str:
        """Return the position of the event, with a link to its entry if the account may see the log."""
        position = LogEntry.objects.filter(pk=row.pk).values_list("position", flat=True).first()
        if position is None:
            return "Not in the log: the event has no position yet, or the log no longer contains the event."
        if not row.may_see_log:  # type: ignore[attr-defined]  # set by `get_object`
            return f"Position {position}"
        page = reverse(f"{self.admin_site.name}:events_logentry_change", args=(row.pk,))
        return format_html('<a href="{}">Position {}</a>', page, position)


class OutboxAdmin(ReadOnlyAdmin[Outbox]):
    titled = "Event {row.pk} without a position"
    list_display = ("event", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    empty_text = "All events are in the log. This is the normal state."


class HeadAdmin(ReadOnlyAdmin[Head]):
    titled = "Log of {row.tenant_id}"
    grows = False
    list_display = ("tenant_id", "position", "recorded_at", "floor", "floor_recorded_at")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("tenant_id__exact",)
    empty_text = "No logs yet. The log of a tenant is created with the tenant."


class MarkAdmin(ReadOnlyAdmin[Mark]):
    """Lists the marks: changes that no event describes yet. Row images are hidden, because they can contain secrets."""

    titled = "Unrecorded change of {row.table_name}"
    list_display = ("table_name", "row_key", "document_table", "document_key", "marked_at", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    fields = ("tenant_id", "table_name", "row_key", "document_table", "document_key", "marked_at")
    empty_text = "All changes are recorded as events. This is the normal state."

    def rows_to_list(self, request: HttpRequest, rows: models.QuerySet[Mark]) -> models.QuerySet[Mark]:
        """Return only the newest marks.

        No index of marks begins with the tenant, so to find all marks of a tenant, PostgreSQL would read the whole table. The sweep
        records marks within seconds, so older marks are rare.
        """
        return rows.filter(pk__in=Mark.objects.order_by("-pk").values("pk")[:FOUND])


class EventStreamAdmin(ReadOnlyAdmin[EventStream], ObjectActionsAdmin[EventStream]):
    """Read-only in this app. Provisioning replaces this registration with a page that edits streams."""

    grows = False
    list_display = ("name", "id", "destination_type", "status", "position", "held_since", "tenant")
    list_filter = ("status", "destination_type")
    list_select_related = ("tenant",)
    sortable_by = ()
    search_fields = ("id__exact", "name")
    fields = ("tenant", "id", "name", "subscriptions", "destination_type", "status", "position", "held_since", "held_reason")
    empty_text = "No event streams yet. Add one to send the events of a tenant to an action or a webhook."


def pages_of_events(site: admin.AdminSite, request: HttpRequest, events: Iterable[Event]) -> dict[int, str]:
    """Return the URL of the page of each event, with one query for all events. If the account may see no page of an event, its URL is
    empty.

    While the event is in the log, the URL leads to the page of its log entry. Before its numbering and after its pruning, the event has no
    log entry, so the URL leads to the page of the event itself.
    """
    keys = [event.pk for event in events]
    may_see_log = request.user.has_perm(PERMISSION)
    entries = set(LogEntry.objects.filter(pk__in=keys).values_list("pk", flat=True)) if may_see_log else set()
    if not request.user.has_perm("events.view_event"):
        return {key: _page(site, "logentry", key) if key in entries else "" for key in keys}
    return {key: _page(site, "logentry" if key in entries else "event", key) for key in keys}


def _page(site: admin.AdminSite, model: str, key: int) -> str:
    return reverse(f"{site.name}:events_{model}_change", args=(key,))


def events_of(site: admin.AdminSite, request: HttpRequest, kind: str, identifier: str, tenant_id: str) -> Panel:
    """Return the last events of one document, newest first."""
    root = f"{kind}:{identifier}"
    newest = list(Event.objects.filter(tenant_id=tenant_id, root=root).order_by("-pk").defer("body")[:_PANEL_EVENTS])
    pages = pages_of_events(site, request, newest)
    rows = [(Cell(event.type), Cell(f"{event.time:%Y-%m-%d %H:%M:%S}"), Cell(event.event_id, pages[event.pk])) for event in newest]
    more = log_of(site, entity=root) if request.user.has_perm(PERMISSION) else ""
    return Panel("Last events", ("Event", "Happened at (UTC)", "Event id"), rows, "No events yet.", more, "All events in the log")
