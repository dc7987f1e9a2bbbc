"""The live page: a tenant's events in the browser as they arrive. `config` serves its stream outside Django's views."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from events.record.catalogue import EVENT_TYPES
from identity.admin.tenant_page import TenantPage

PERMISSION = "events.view_logentry"
_LONGEST_ENTITY = 400


class LivePage(TenantPage):
    """The page itself contains no event; its script reads the events from the stream."""

    label = "events.live-page"
    title = "Live events"
    url_name = "events_live"
    permission = PERMISSION

    def urls(self) -> list[URLPattern]:
        return [path("events/live/", self.for_tenant(self.show), name=self.url_name)]

    def show(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Render the page of the tenant in scope. The query can select event types and an entity, for links from other pages."""
        context = {
            "tenant_id": tenant_id,
            "types": EVENT_TYPES,
            "chosen_types": set(request.GET.getlist("event_type")) & set(EVENT_TYPES),
            "entity": request.GET.get("entity", "")[:_LONGEST_ENTITY],
            "stream_url": f"{self.address}{tenant_id}/stream",
            "log_url": reverse(f"{self.site.name}:events_logentry_changelist"),
        }
        return self.page(request, "admin/live_events.html", context)
