"""Tables on the page of a user: dead letters, and the deliveries of the last events."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import admin
from django.http import HttpRequest

from events.models import Event
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.people.tables import Tables, moment
from identity.models import User
from provisioning.admin.outcomes.verdicts import outcome_of
from provisioning.admin.rights import may as may_see
from provisioning.admin.stream_names import stream_cells
from provisioning.models import DeadLetter, Delivery

_SHOWN = 20


class UserTables(Tables):
    """The tables of one site. Accounts that may not see the rows of a table do not see the table."""

    def add_to(self, page: ObjectActionsAdmin[User]) -> None:
        """Add the tables to the tab with the last events, dead letters first."""
        page.tabs[page.events_tab] = [self.dead_letters, self.deliveries, *page.tabs.get(page.events_tab, [])]

    def deliveries(self, request: HttpRequest, user: User) -> Panel | None:
        """Return the deliveries of the last events. Reads the ids of these events first, because an index finds deliveries by event id."""
        if not self.may(request, "view", Delivery):
            return None
        events = Event.objects.filter(tenant_id=user.tenant_id, root=f"user:{user.user_id}").order_by("-pk")
        ids = list(events.values_list("event_id", flat=True)[:_SHOWN])
        found = Delivery.objects.filter(tenant_id=user.tenant_id, event_id__in=ids).order_by("-pk")[:_SHOWN]
        streams = self._streams_of(request, user, found)
        rows = [
            (
                self.linked(request, delivery, delivery.event_type),
                streams[delivery.stream_id],
                Cell(delivery.get_state_display()),
                Cell(outcome_of(delivery)[:200]),
                Cell(moment(delivery.last_attempt_at) if delivery.last_attempt_at else "Not yet"),
            )
            for delivery in found
        ]
        columns = ("Event", "Stream", "State", "Outcome", "Last attempt (UTC)")
        more = self.page_of(user, "timeline") if self.may(request, "view", Event) else ""
        return Panel("Deliveries of the last events", columns, rows, "No deliveries.", more, "All events with their deliveries")

    def dead_letters(self, request: HttpRequest, user: User) -> Panel | None:
        if not may_see(request):
            return None
        key = f"user:{user.user_id}"
        letters = DeadLetter.objects.filter(tenant_id=user.tenant_id, key=key).defer("body", "rebuilt_body").order_by("-pk")[:_SHOWN]
        streams = self._streams_of(request, user, letters)
        rows = [
            (
                self.linked(request, letter, letter.event_type),
                streams[letter.stream_id],
                Cell(letter.get_state_display()),
                Cell(letter.reason[:200]),
                Cell(moment(letter.created_at)),
            )
            for letter in letters
        ]
        columns = ("Event", "Stream", "State", "Reason", "Since (UTC)")
        more = self.list_of(DeadLetter, q=user.user_id)
        return Panel("Dead letters", columns, rows, "No dead letters.", more, "All dead letters of this user")

    def _streams_of(self, request: HttpRequest, user: User, rows: Iterable[DeadLetter] | Iterable[Delivery]) -> dict[str, Cell]:
        return stream_cells(self._site, request, tenant_id=user.tenant_id, stream_ids=(row.stream_id for row in rows))


def show_user_tables(site: admin.AdminSite) -> None:
    """Add the tab with the tables to the page of a user."""
    page = site.get_model_admin(User)
    if isinstance(page, ObjectActionsAdmin):
        UserTables(site).add_to(page)
