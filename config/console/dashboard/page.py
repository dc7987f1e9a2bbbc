"""The context of the start page's template."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from config.console.dashboard.checklist import checklist
from config.console.dashboard.figures import figures
from config.console.dashboard.health import findings
from config.console.dashboard.panels import charts, flow_panel
from config.console.dashboard.state import latest_events, read_state
from config.console.dashboard.viewer import Viewer
from events.admin.entities import name_entities
from identity.models import Tenant

TENANTS_SHOWN = 50


def dashboard_of(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    """Return the dashboard of the tenant in scope, or the dashboard of the platform with the list of tenants."""
    viewer = Viewer.of(request)
    state = read_state(viewer)
    flow = flow_panel(viewer, state)
    shown: dict[str, Any] = {
        "figures": figures(viewer, state),
        "charts": charts(viewer, state),
        "panels": [] if flow is None else [flow],
        "findings": findings(viewer, state),
        "checklist": checklist(viewer),
        "now": state.now,
    }
    if viewer.tenant_id is None:
        shown["tenants"] = Tenant.objects.order_by("pk")[:TENANTS_SHOWN]
    elif viewer.may_list("events_logentry"):
        shown["latest_events"] = list(latest_events(viewer.tenant_id))
        name_entities(site, request, shown["latest_events"])
    return shown
