"""Admin pages of the event stream, all read-only: only the recorder and the numberer write these rows."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import localize
from django.utils.http import urlencode
from django.utils.timezone import localtime

from events.catalogue import EVENT_TYPES
from events.envelope import EventTooLarge
from events.models import Event, EventStream, Head, LogEntry, Mark, Outbox
from identity.admin.badges import json_block
from identity.admin.json_fields import pretty
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.panels import Cell, Panel
from identity.admin.refusals import also_refuses
from identity.admin.scope import tenant_in_scope
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.models import Connection, Group, Organization, User

# A rare type is looked for among so many entries at most, so that the page costs the same in a log of any length.
TYPE_WINDOW = 10_000
_ENTITY_EVENTS = 1_000
_PANEL_EVENTS = 20


class TypeFilter(SimpleListFilter):
    """Filters by event type within the newest entries, or those up to the position that was searched for."""

    title = "event type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in EVENT_TYPES]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[LogEntry]) -> models.QuerySet[LogEntry] | None:
        if self.value() not in EVENT_TYPES:
            return None
        # One look-up per entry of the window: a join could be planned as a walk over all events there are.
        kind = Event.objects.filter(pk=models.OuterRef("pk")).values("type")
        return self._window(request, queryset).alias(kind=models.Subquery(kind)).filter(kind=self.value())

    def _window(self, request: HttpRequest, queryset: models.QuerySet[LogEntry]) -> models.QuerySet[LogEntry]:
        tenant = tenant_in_scope(request)
        if tenant is None:
            newest = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            return queryset.filter(pk__gt=newest - TYPE_WINDOW)
        searched = _position(request.GET.get("q", ""))
        head = Head.objects.filter(pk=tenant).values_list("position", flat=True).first() or 0
        return queryset.filter(position__gt=(head if searched is None else searched) - TYPE_WINDOW)


def _position(term: str) -> int | None:
    term = term.strip()
    return int(term) if term.isascii() and term.isdigit() and len(term) < 19 else None


def _events_named(term: str, tenant: str | None) -> models.QuerySet[Any, Any]:
    """Return the keys of the event with this id, or of the newest events of this entity, each by an index.

    The index by entity starts with the tenant: over all tenants only the newest events are looked at.
    """
    if term.startswith("evt_"):
        return Event.objects.filter(event_id=term).values("pk")
    events = Event.objects.filter(root=term)
    if tenant is None:
        newest = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        return events.filter(pk__gt=newest - TYPE_WINDOW).values("pk")
    return events.filter(tenant_id=tenant).order_by("-pk").values("pk")[:_ENTITY_EVENTS]


def message_of(event: Event) -> str:
    """Return a stored envelope laid out for people; bytes that are no JSON are shown as they are."""
    body = bytes(event.body)
    try:
        return pretty(json.loads(body))
    except ValueError:
        return body.decode(errors="replace")


class LogEntryAdmin(ReadOnlyAdmin[LogEntry]):
    """The log browser."""

    list_display = ("position", "type", "entity", "recorded_at", "event_id_text", "tenant_id")
    list_display_links = ("position", "event_id_text")
    list_filter = ("recorded_at", TypeFilter)
    sortable_by = ()
    search_fields = ("position",)
    search_help_text = (
        "An event id (evt_…), an entity (user:database|…), or a position to read backwards from. "
        f"A type is looked for among {TYPE_WINDOW:,} entries: search a position to look further back."
    )
    fields = ("tenant_id", "position", "recorded_at", "type", "entity", "time", "event_id_text", "message")
    readonly_fields = ("type", "entity", "time", "event_id_text", "message")
    empty_text = "No events match. Every change of a user or a connection appears here within a moment."

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[LogEntry]:
        return super().get_queryset(request).select_related("event").defer("event__body")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Both orders are an index read backwards; the tenant names the pair that is unique.
        return ("-tenant_id", "-position") if self.is_bound(request) else ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[LogEntry], search_term: str
    ) -> tuple[models.QuerySet[LogEntry], bool]:
        """Look up by an index what the term is: position, event id or entity."""
        term = search_term.strip()
        if not term:
            return queryset, False
        position = _position(term)
        if position is not None:
            return queryset.filter(position__lte=position), False
        return queryset.filter(pk__in=_events_named(term, tenant_in_scope(request))), False

    @admin.display(description="Event type")
    def type(self, row: LogEntry) -> str:
        return row.event.type

    @admin.display(description="Entity")
    def entity(self, row: LogEntry) -> str:
        return row.event.root

    @admin.display(description="Event id")
    def event_id_text(self, row: LogEntry) -> str:
        return row.event.event_id

    @admin.display(description="Happened at")
    def time(self, row: LogEntry) -> str:
        return localize(localtime(row.event.time))

    @admin.display(description="Message")
    def message(self, row: LogEntry) -> str:
        return json_block(message_of(row.event))


class EventAdmin(ReadOnlyAdmin[Event]):
    """Every stored event, numbered or not."""

    list_display = ("event_id", "type", "root", "time", "tenant_id")
    sortable_by = ()
    search_fields = ("event_id",)
    search_help_text = "An event id (evt_…) or an entity (user:database|…)."
    fields = ("tenant_id", "event_id", "type", "root", "time", "message")
    readonly_fields = ("message",)
    empty_text = "No events yet. The first change of a user or a connection makes one."

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Within a tenant the index by entity serves the list; the newest of all are in the log.
        return ("tenant_id", "root", "pk") if self.is_bound(request) else ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Event], search_term: str
    ) -> tuple[models.QuerySet[Event], bool]:
        term = search_term.strip()
        return (queryset.filter(pk__in=_events_named(term, tenant_in_scope(request))) if term else queryset), False

    @admin.display(description="Message")
    def message(self, row: Event) -> str:
        return json_block(message_of(row))


class OutboxAdmin(ReadOnlyAdmin[Outbox]):
    list_display = ("event", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    empty_text = "Nothing waits for its position. That is how it should be."


class HeadAdmin(ReadOnlyAdmin[Head]):
    list_display = ("tenant_id", "position", "recorded_at", "floor", "epoch")
    sortable_by = ()
    ordering = ("pk",)
    search_fields = ("tenant_id__exact",)
    empty_text = "No logs yet. Each tenant gets one when it is made."


class MarkAdmin(ReadOnlyAdmin[Mark]):
    """Changes that no event covers yet. The images of the rows are not shown: they hold what a row holds."""

    list_display = ("table_name", "row_key", "document_table", "document_key", "marked_at", "tenant_id")
    sortable_by = ()
    ordering = ("pk",)
    fields = ("tenant_id", "table_name", "row_key", "document_table", "document_key", "marked_at")
    empty_text = "Every change has its event. That is how it should be."


class EventStreamAdmin(ReadOnlyAdmin[EventStream], ObjectActionsAdmin[EventStream]):
    """Read-only here: setting a stream up is provisioning's, which replaces this registration."""

    list_display = ("name", "id", "destination_type", "status", "position", "held_since", "tenant")
    list_filter = ("status", "destination_type")
    list_select_related = ("tenant",)
    sortable_by = ()
    search_fields = ("id__exact", "name")
    fields = ("tenant", "id", "name", "subscriptions", "destination_type", "status", "position", "held_since", "held_reason")
    empty_text = "No event streams yet. A stream sends this tenant's events to an action or a web address."


def events_of(site: admin.AdminSite, kind: str, identifier: str, tenant_id: str) -> Panel:
    """Return the last events of one document, newest first."""
    root = f"{kind}:{identifier}"
    place = f"{site.name}:events_event_change"
    newest = Event.objects.filter(tenant_id=tenant_id, root=root).order_by("-pk").defer("body")[:_PANEL_EVENTS]
    rows = [
        (Cell(event.type), Cell(f"{event.time:%Y-%m-%d %H:%M:%S}"), Cell(event.event_id, reverse(place, args=(event.pk,))))
        for event in newest
    ]
    more = f"{reverse(f'{site.name}:events_logentry_changelist')}?{urlencode({'q': root})}"
    return Panel("Last events", ("Event", "Happened at (UTC)", "Event id"), rows, "No events yet.", more, "All of them in the log")


def register(site: admin.AdminSite) -> None:
    """Register every model of this app with `site`, and show the last events on the pages of what has them."""
    also_refuses(EventTooLarge)
    site.register(LogEntry, LogEntryAdmin)
    site.register(Event, EventAdmin)
    site.register(Outbox, OutboxAdmin)
    site.register(Head, HeadAdmin)
    site.register(Mark, MarkAdmin)
    site.register(EventStream, EventStreamAdmin)
    _show_events(site, User, "user", "user_id")
    for model, kind in ((Connection, "connection"), (Group, "group"), (Organization, "organization")):
        _show_events(site, model, kind, "id")


def _show_events(site: admin.AdminSite, model: type[models.Model], kind: str, identity_field: str) -> None:
    page = site.get_model_admin(model)
    if isinstance(page, ObjectActionsAdmin):
        page.panels.append(lambda _request, row: events_of(site, kind, getattr(row, identity_field), row.tenant_id))
