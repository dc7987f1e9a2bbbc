"""The live page: a tenant's events in the browser as they arrive. `config` serves the stream of this page, outside Django's views."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe

from events.admin.entities import entities_of
from events.record.catalogue import EVENT_TYPES
from identity.admin.tenant_page import TenantPage

PERMISSION = "events.view_logentry"
_LONGEST_ENTITY = 400
# The script requests at most this many names at once: with usual ids, the URL stays below 4,000 characters.
NAMES_AT_ONCE = 40


class LivePage(TenantPage):
    """Serves a page without events. The script of the page reads events from the stream, and the names of their entities from `names`."""

    label = "events.live-page"
    title = "Live events"
    url_name = "events_live"
    permission = PERMISSION

    def urls(self) -> list[URLPattern]:
        return [
            path("events/live/", self.for_tenant(self.show), name=self.url_name),
            path("events/live/names/", self.for_tenant(require_safe(self.names)), name=f"{self.url_name}_names"),
        ]

    def show(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Render the page of the tenant in scope. The query string can select event types and an entity; links on other pages use this."""
        context = {
            "tenant_id": tenant_id,
            "types": EVENT_TYPES,
            "chosen_types": set(request.GET.getlist("event_type")) & set(EVENT_TYPES),
            "entity": request.GET.get("entity", "")[:_LONGEST_ENTITY],
            "stream_url": f"{self.address}{tenant_id}/stream",
            "names_url": reverse(f"{self.site.name}:{self.url_name}_names"),
            "names_at_once": NAMES_AT_ONCE,
            "log_url": reverse(f"{self.site.name}:events_logentry_changelist"),
        }
        return self.page(request, "admin/live_events.html", context)

    def names(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Return the name and the page of each entity in the parameters `root`, as JSON.

        Raises 404 if the request has no parameter `root`, or if the page that sends the request shows another tenant than `tenant_id`.
        """
        asked = [root for root in request.GET.getlist("root")[:NAMES_AT_ONCE] if len(root) <= _LONGEST_ENTITY]
        if not asked or request.GET.get("tenant") != tenant_id:
            raise Http404
        found = entities_of(self.site, request, [(tenant_id, root) for root in asked])
        shown = {one.root: {"text": one.text, "url": one.url, "is_deleted": one.is_deleted} for one in found.values()}
        return JsonResponse({"entities": shown})
