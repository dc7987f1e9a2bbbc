"""The page of one event: the names of its entities, the changed fields, and the stored message."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from events.admin.entities import Entity, entities_of
from events.admin.event_links import live_of, log_of
from events.admin.live import PERMISSION
from events.log.stored_envelope import envelope_of, roots_in
from events.models import Event
from foundation.admin.badges import json_block
from foundation.admin.json_fields import pretty
from foundation.admin.panels import Cell, Panel
from foundation.differences import differences, value_text
from identity.admin.object_actions import ObjectActionsAdmin, button
from identity.admin.tenant_scope import ReadOnlyAdmin

Row = TypeVar("Row", bound=models.Model)
# The id of the HTML element whose text the button "Copy as JSON" copies.
MESSAGE_ID = "event-message"
_WITHOUT_PREVIOUS = "Unknown: this event does not contain the earlier values."


class EventPage(ReadOnlyAdmin[Row], ObjectActionsAdmin[Row]):
    """The base class of two pages: the page of an event, and the page of a log entry. A subclass implements `event_in`."""

    change_form_template = "admin/log_entry.html"
    id_field = "shown_event_id"
    # Events never change, so the audit log has no entries about them.
    has_history = False
    primary_action = "entity"
    hidden_if_empty: tuple[str, ...] = ("others",)

    def __init__(self, model: type[Row], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.panels.append(self.what_changed)

    def event_in(self, row: Any) -> Event:
        """Return the event that the page of the row shows."""
        raise NotImplementedError

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Row:
        """Return the row with values for its page: the id of the event, its entities, and whether the account may see the log."""
        row: Any = super().get_object(request, object_id, from_field)
        event = self.event_in(row)
        roots = dict.fromkeys((event.root, *roots_in(envelope_of(event.body))))
        found = entities_of(self.admin_site, request, [(event.tenant_id, root) for root in roots])
        row.shown_event_id = event.event_id
        row.may_see_log = request.user.has_perm(PERMISSION)
        row.entity, *row.other_entities = found.values()
        return row  # type: ignore[no-any-return]

    def heading_of(self, row: Any) -> str:
        entity: Entity | None = getattr(row, "entity", None)
        return str(row) if entity is None else f"{self.event_in(row).type} for {entity.text}"

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None:
            context["message_id"] = MESSAGE_ID
            context["message"] = json_block(message_of(self.event_in(row)))
        return super().render_change_form(request, context, *args, **kwargs)

    def buttons_of(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """Add buttons that open the page of the entity and copy the message. Other buttons show all events, or the live events, of the same
        entity or type."""
        entity, event_type = row.entity, self.event_in(row).type
        found = [button("entity", f"Show {entity.kind}", entity.url)] if entity.url else []
        found.append({**button("copy", "Copy as JSON", ""), "copies": MESSAGE_ID})
        if request.user.has_perm(PERMISSION):
            found += [
                button("all-of-entity", "All events of this entity", log_of(self.admin_site, entity=entity.root)),
                button("all-of-type", "All events of this type", log_of(self.admin_site, type=event_type)),
                button("live-of-entity", "Live events of this entity", live_of(self.admin_site, entity=entity.root)),
                button("live-of-type", "Live events of this type", live_of(self.admin_site, event_type=event_type)),
            ]
        return [*found, *super().buttons_of(request, row)]

    @admin.display(description="Entity")
    def entity_page(self, row: Any) -> str:
        """Show the entity, with links to its own page (if it still exists) and to all its events (if the account may see the log)."""
        entity: Entity = row.entity
        if not row.may_see_log:
            return format_html('<div class="entity-line">{}</div>', entity.shown)
        links = (entity.shown, log_of(self.admin_site, entity=entity.root), live_of(self.admin_site, entity=entity.root))
        lines = '<div class="entity-line">{}</div><div class="entity-line"><a href="{}">All events</a> <a href="{}">Live events</a></div>'
        return format_html(lines, *links)

    @admin.display(description="Other entities")
    def others(self, row: Any) -> str:
        """Show the other entities of the event, such as the member of an organization, each with its kind and a link to its page."""
        entities: list[Entity] = row.other_entities
        return format_html_join("", '<div class="entity-line">{} {}</div>', ((one.kind.capitalize(), one.shown) for one in entities))

    def what_changed(self, _request: HttpRequest, row: Any) -> Panel:
        """Return the fields that differ from the previous object, with their old and new values."""
        data = envelope_of(self.event_in(row).body).get("data")
        data = data if isinstance(data, dict) else {}
        found = differences(data.get("previous_object"), data.get("object")) if "previous_object" in data else ()
        rows = [(Cell(one.path), Cell(value_text(one.before)), Cell(value_text(one.after))) for one in found]
        without = "No field differs from the earlier values." if "previous_object" in data else _WITHOUT_PREVIOUS
        return Panel("What changed", ("Field", "Before", "After"), rows, without)


def message_of(event: Event) -> str:
    """Return a stored envelope as indented JSON; other bytes are returned as text."""
    body = bytes(event.body)
    try:
        return pretty(json.loads(body))
    except ValueError:
        return body.decode(errors="replace")
