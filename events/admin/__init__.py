"""Admin pages of the event stream: the log, other stored rows, open connections, and a live view."""

from __future__ import annotations

from django.contrib import admin
from django.db import models

from events.admin.event_links import links_to_events
from events.admin.live import LivePage
from events.admin.log import LogEntryAdmin
from events.admin.open_connections import ConnectionsPage
from events.admin.stored import EventAdmin, EventStreamAdmin, HeadAdmin, MarkAdmin, OutboxAdmin, events_of
from events.log.envelope import EventTooLarge
from events.models import Event, EventStream, Head, LogEntry, Mark, Outbox
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.refusals import also_refuses
from identity.admin.tenant_page import PagesSite
from identity.models import Connection, Group, Organization, User


def register(site: PagesSite) -> None:
    """Register every model and page of this app with `site`.

    The page of a row of a recorded model then shows the last events of the row.
    """
    also_refuses(EventTooLarge)
    site.register(LogEntry, LogEntryAdmin)
    site.register(Event, EventAdmin)
    site.register(Outbox, OutboxAdmin)
    site.register(Head, HeadAdmin)
    site.register(Mark, MarkAdmin)
    site.register(EventStream, EventStreamAdmin)
    site.register_page(LivePage)
    site.register_page(ConnectionsPage)
    _show_events(site, User, "user", "user_id")
    for model, kind in ((Connection, "connection"), (Group, "group"), (Organization, "organization")):
        _show_events(site, model, kind, "id")


def _show_events(site: admin.AdminSite, model: type[models.Model], kind: str, identity_field: str) -> None:
    page = site.get_model_admin(model)
    if isinstance(page, ObjectActionsAdmin):
        page.object_links += links_to_events(site, lambda row: f"{kind}:{getattr(row, identity_field)}")
        shown = page.tabs.setdefault(page.events_tab, []) if page.tabs else page.panels
        shown.append(lambda request, row: events_of(site, request, kind, getattr(row, identity_field), row.tenant_id))
