"""The search field at the head of each page, which finds all kinds of objects.

Each kind of object is searched as in its own list: with the same fields, permissions and tenant. Names are searched in the newest `WALK`
rows of a table, and identifiers by index, so the cost does not grow with the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.admin.utils import quote
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst

from events.admin.entities import NamesEntities
from foundation.admin.keyset_list import WALK
from identity.admin.object_actions import ObjectActionsAdmin
from identity.search.time_limit import SearchTookTooLong, search_time_limited

# The kinds in the order in which the page shows them.
KINDS = (
    "identity.user",
    "authapi.client",
    "identity.organization",
    "identity.connection",
    "identity.group",
    "identity.role",
    "authapi.apiresource",
    "events.eventstream",
    "provisioning.action",
    "events.event",
    "provisioning.deadletter",
    "provisioning.delivery",
    "authapi.session",
)
_SHOWN = 5
_LONGEST = 200


@dataclass(frozen=True)
class Hit:
    """A link to an object that was found."""

    title: str
    url: str
    badge: str
    public_id: str


@dataclass(frozen=True)
class Hits:
    """At most `_SHOWN` hits of one kind, and the URL of its list with the same search. `is_late`: the search took too long."""

    kind: str
    hits: list[Hit]
    list_url: str
    has_more: bool = False
    is_late: bool = False


def search_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Show the objects that match the query parameter `q` and that this account may see, grouped by kind."""
    term = request.GET.get("q", "").strip()[:_LONGEST]
    found = [hits for label in KINDS if (hits := _hits_of(site, request, label, term)) is not None] if term else []
    context = {
        **site.each_context(request),
        "title": f"Search: {term}" if term else "Search",
        "subtitle": None,
        "searched_everywhere": term,
        "found": found,
    }
    request.current_app = site.name
    return TemplateResponse(request, "admin/search.html", context)


def _hits_of(site: Any, request: HttpRequest, label: str, term: str) -> Hits | None:
    """Return the hits of one kind; None if nothing was found or the account may not see the kind."""
    model = apps.get_model(label)
    page = site.get_model_admin(model)
    if not page.has_view_permission(request):
        return None
    place = f"{site.name}:{model._meta.app_label}_{model._meta.model_name}"
    title, address = capfirst(str(model._meta.verbose_name_plural)), f"{reverse(f'{place}_changelist')}?{urlencode({'q': term})}"
    try:
        with search_time_limited():
            rows = list(_rows_of(page, request, term)[: _SHOWN + 1])
    except SearchTookTooLong:
        return Hits(title, [], address, is_late=True)
    if isinstance(page, NamesEntities):
        page.name_rows(request, rows)
    hits = [_hit(page, row, place) for row in rows[:_SHOWN]]
    return Hits(title, hits, address, has_more=len(rows) > _SHOWN) if hits else None


def _rows_of(page: Any, request: HttpRequest, term: str) -> QuerySet[Any]:
    rows = page.get_queryset(request)
    by_index: QuerySet[Any] | None = page.found_by_index(request, rows, term)
    if by_index is not None and by_index.exists():
        return by_index
    if all(name.endswith("__exact") for name in page.get_search_fields(request)):
        return rows.none() if by_index is not None else _found(page, request, rows, term)
    if page.grows:
        rows = rows.filter(pk__in=rows.order_by(*page.get_ordering(request)).values("pk")[:WALK])
    return _found(page, request, rows, term)


def _found(page: Any, request: HttpRequest, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    found: QuerySet[Any] = page.get_search_results(request, rows, term)[0]
    return found.order_by(*page.get_ordering(request))


def _hit(page: Any, row: Model, place: str) -> Hit:
    address = reverse(f"{place}_change", args=(quote(row.pk),))
    if not isinstance(page, ObjectActionsAdmin):
        return Hit(str(row), address, "", "")
    public_id = str(getattr(row, page.id_field)) if page.id_field else ""
    return Hit(page.heading_of(row), address, page.badge_of(row), public_id)
