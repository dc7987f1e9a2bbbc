"""The page with every component of the console, for developers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from config.console.dashboard.figures import Figure
from foundation.admin.badges import badge
from foundation.admin.charts import Chart, count_axis, upright
from foundation.admin.list_cells import clock_of, yes_no
from foundation.admin.panels import Cell, Panel, PanelForm, Tab
from identity.admin.scope import is_operator

_SYMBOL = re.compile(r'<symbol id="([a-z]+)"')
# The scales of `theme/admin.css`: text sizes beginning with the largest, distances beginning with the smallest.
TEXT_SIZES = ("figure", "title", "lead", "heading", "body", "control", "small", "note")
DISTANCES = (2, 4, 6, 8, 12, 16, 24, 32)
_HOURS = [datetime(2026, 11, 23, hour, tzinfo=UTC) for hour in range(24)]


class MemberForm(forms.Form):
    """The sample form of a table."""

    email = forms.EmailField(label="Email address", help_text="The user must have an account.")


def components_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Show the components with sample data to platform operators. Other accounts get 404."""
    if not is_operator(request):
        raise Http404
    rows = [(Cell("Ada Lovelace", "#", note="ada@example.com", copied="usr_5F255Osw"), Cell("Active"), Cell("2026-11-23 19:33:08"))]
    context = {
        **site.each_context(request),
        "title": "Components",
        "subtitle": None,
        "badges": [badge("Active", "good"), badge("Held", "warn"), badge("Blocked", "bad"), badge("Draft")],
        "answers": [yes_no(value=True), yes_no(value=False), yes_no(value=None)],
        "tabs": [Tab("Details", "#", is_current=True), Tab("Members", "#", is_current=False)],
        "panels": [
            Panel("A table", ("Name", "State", "Created at (UTC)"), rows, add_url="#", add_text="Add a row"),
            Panel("A table with a form", ("Name",), [row[:1] for row in rows], form=PanelForm(MemberForm(), "#", "Add member")),
            Panel("An empty table", ("Name",), empty_text="No rows yet."),
        ],
        "icons": icon_names(),
        "text_sizes": TEXT_SIZES,
        "distances": DISTANCES,
        "copied_text": ". .data/up.env\nTOKEN=$(.venv/bin/python manage.py events token)",
        "figures": [Figure("Dead letters", "3", "#", "open", "bad"), Figure("Users", "1,204", "#", "active")],
        "charts": [_chart([number % 7 * 3 for number in range(24)]), _chart([0] * 24, key="none", title="Failed logins")],
    }
    request.current_app = site.name
    return TemplateResponse(request, "admin/components.html", context)


def _chart(counts: list[int], *, key: str = "sample", title: str = "Events") -> Chart:
    bars, end = upright(counts, lambda number: f"{_HOURS[number]:%Y-%m-%d %H:%M}", lambda _number: "#"), count_axis(counts)
    axes = {"first": clock_of(_HOURS[0]), "middle": clock_of(_HOURS[12]), "last": "now", "top": f"{end}", "half": f"{end // 2}"}
    total, empty = f"{sum(counts)}", "No failed logins in the last 24 hours."
    return Chart(key, title, "#", total, f"{total} events in 24 hours.", bars, is_upright=True, empty=empty, unit="events", **axes)


def icon_names() -> list[str]:
    """Return the names of the icons in the sprite, in its order."""
    place = finders.find("theme/icons.svg")
    if not isinstance(place, str):
        raise FileNotFoundError("theme/icons.svg")
    with open(place) as sprite:  # noqa: PTH123
        return _SYMBOL.findall(sprite.read())
