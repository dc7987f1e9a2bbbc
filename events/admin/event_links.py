"""URLs of the pages "Event log" and "Live events", limited to one entity or one type, and the links to these URLs on pages of entities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.http import urlencode

from events.admin.live import PERMISSION
from identity.admin.object_links import ObjectLink


def log_of(site: admin.AdminSite, **query: str) -> str:
    """Return the URL of the event log with a search for `entity` or `type`."""
    return f"{reverse(f'{site.name}:events_logentry_changelist')}?{urlencode(query)}"


def live_of(site: admin.AdminSite, **query: str) -> str:
    """Return the URL of the live page with a filter for `entity` or `event_type`."""
    return f"{reverse(f'{site.name}:events_live')}?{urlencode(query)}"


def links_to_events(site: admin.AdminSite, root_of: Callable[[Any], str]) -> list[ObjectLink]:
    """Return the links to all events of an entity. `root_of` returns the `<kind>:<id>` of a row."""
    return [
        ObjectLink("all-events", "All events", lambda row: log_of(site, entity=root_of(row)), PERMISSION),
        ObjectLink("live-events", "Live events", lambda row: live_of(site, entity=root_of(row)), PERMISSION),
    ]
