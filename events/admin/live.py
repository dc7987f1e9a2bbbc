"""The live page: events of one tenant in the browser as they arrive. Its stream is answered beside Django, in the wiring."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from events.record.catalogue import EVENT_TYPES
from identity.admin.tenant_page import TenantPage

PERMISSION = "events.view_logentry"


class LivePage(TenantPage):
    """The page itself holds no event: its script reads them."""

    label = "events.live-page"
    title = "Live events"
    url_name = "events_live"
    permission = PERMISSION

    def urls(self) -> list[URLPattern]:
        return [path("events/live/", self.for_tenant(self.show), name=self.url_name)]

    def show(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Show the frame of the page for the tenant in scope."""
        context = {
            "tenant_id": tenant_id,
            "types": EVENT_TYPES,
            "stream_url": f"{self.address}{tenant_id}/stream",
            "log_url": reverse(f"{self.site.name}:events_logentry_changelist"),
        }
        return self.page(request, "admin/live_events.html", context)
