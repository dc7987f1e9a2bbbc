"""The URL of every page of the admin, and the budget of each page."""

from __future__ import annotations

import tomllib
from http import HTTPStatus
from pathlib import Path

from django.contrib.admin.utils import quote
from django.db import models
from django.test import Client
from django.urls import resolve, reverse

from config.console.admin_site import site
from tests.factories.admin import Rows, addresses_of_page

BUDGETS = Path(__file__).with_name("page_budgets.toml")


def every_page(session: Client, rows: Rows) -> list[str]:
    """Return the URL of every page that `session` may open, beginning with the start page."""
    others = [reverse("admin:choose_tenant"), reverse("admin:password_change")]
    # Some of these URLs accept only POST, or need a row that does not exist. They do not answer 200 and are left out.
    extra = [address for page in site.pages for address in addresses_of_page(page)]
    start = reverse("admin:index")
    request = session.get(start).wsgi_request
    found = [start, *others, *(address for address in extra if session.get(address).status_code == HTTPStatus.OK)]
    for model, page in site._registry.items():
        found.append(place_of(model, "changelist"))
        if page.has_add_permission(request):
            found.append(place_of(model, "add"))
        if getattr(page, "tenant_column", None):
            found.append(place_of(model, "change", quote(rows.of(model).pk)))
    return list(dict.fromkeys(found))


def place_of(model: type[models.Model], page: str, *keys: str) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=keys)


def page_of_row(row: models.Model, page: str = "change") -> str:
    return place_of(type(row), page, quote(row.pk))


def name_of(address: str) -> str:
    """Return the name of a page in the table of budgets."""
    return resolve(address).url_name or address


def budgets(unit: str) -> dict[str, int]:
    """Return the budget of `kilobytes` or `queries` of each page."""
    table = tomllib.loads(BUDGETS.read_text())
    return {name: row[unit] for name, row in table.items()}


def beyond_budget(unit: str, measured: dict[str, int]) -> list[str]:
    """Return a line for each page that needs more than its budget or has no budget, and for each budget without a page."""
    allowed = budgets(unit)
    missing = [f"{name}: no page has this name" for name in sorted(allowed.keys() - measured.keys())]
    exceeded = {name: value for name, value in measured.items() if value > allowed.get(name, -1)}
    return [*missing, *(f"{name}: {value} {unit}, and its budget is {allowed.get(name, 'missing')}" for name, value in exceeded.items())]
