"""The page with every component of the console, for developers."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from foundation.admin.badges import badge
from foundation.admin.panels import Cell, Panel, Tab
from identity.admin.scope import is_operator

_SYMBOL = re.compile(r'<symbol id="([a-z]+)"')


def components_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Show the components with sample data to platform operators. Other accounts get 404."""
    if not is_operator(request):
        raise Http404
    rows = [(Cell("Ada Lovelace", "#"), Cell("Active"), Cell("2026-11-23 19:33:08"))]
    context = {
        **site.each_context(request),
        "title": "Components",
        "subtitle": None,
        "badges": [badge("Active", "good"), badge("Held", "warn"), badge("Blocked", "bad"), badge("Draft")],
        "tabs": [Tab("Details", "#", is_current=True), Tab("Members", "#", is_current=False)],
        "panels": [
            Panel("A table", ("Name", "State", "Created at (UTC)"), rows, add_url="#", add_text="Add a row"),
            Panel("An empty table", ("Name",), empty_text="No rows yet."),
        ],
        "icons": icon_names(),
    }
    request.current_app = site.name
    return TemplateResponse(request, "admin/components.html", context)


def icon_names() -> list[str]:
    """Return the names of the icons in the sprite, in its order."""
    place = finders.find("theme/icons.svg")
    if not isinstance(place, str):
        raise FileNotFoundError("theme/icons.svg")
    with open(place) as sprite:  # noqa: PTH123
        return _SYMBOL.findall(sprite.read())
