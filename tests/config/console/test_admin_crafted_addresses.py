"""Crafted query strings on the pages of the admin get a message, 400 or an empty list. They cause no 500 and no slow query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from config.console.admin_site import site
from identity.admin.tenant_page import TenantPage
from tests.depth import sample
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant

MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
# Lookups that no list offers: comparisons without an index, parts of times, and patterns that could keep the database busy for hours.
LOOKUPS = (
    "regex",
    "iregex",
    "contains",
    "icontains",
    "iexact",
    "startswith",
    "iendswith",
    "search",
    "year",
    "week_day",
    "length__gt",
    "range",
)
VALUES = (
    "99999999999999999999999999",
    "-99999999999999999999999999",
    "1e400",
    "NaN",
    "0001-01-01 00:00:00+14:00",
    "9999-12-31 23:59:59-14:00",
    "300000-01-01",
    "(((((a+)+)+)+)+$",
    "\ud800".encode("utf-8", "surrogatepass"),
    "x" * 5000,
    "%",
    '["',
    "{" * 3000,
    "",
)
FILTER_VALUES = (VALUES[0], "0001-01-01 00:00:00+14:00", "\U0001f600" * 200, "((", "")
# A pattern operator or a pattern function of PostgreSQL.
_PATTERN = re.compile(r" ~\*? | SIMILAR TO |regexp_", re.IGNORECASE)
# Parameters that every list reads, besides its filters.
PLACES = ("q", "p", "o", "after", "before")
NAMES = ("e", "all", "_popup", "_to_field", "_facets", "_changelist_filters", "no_such_column", "tenant", "next")
_FIELD = re.compile(r"<(?:input|select)\b[^>]*\bname=\"([^\"]+)\"")
_LINKED = re.compile(r"[?&](?:amp;)?([A-Za-z_][A-Za-z0-9_]*)=")


@pytest.fixture
def operator(committed_db: None) -> Client:
    return browser_of(new_staff(None))


@pytest.fixture
def bound(committed_db: None) -> Client:
    tenant = new_tenant()
    Rows(tenant)
    return browser_of(new_staff(tenant))


def list_of(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@dataclass
class Asked:
    """A browser. It records the URL and the status of each answer that is neither a page nor a redirect nor a refusal."""

    browser: Client
    failed: dict[str, int] = field(default_factory=dict)

    def ask(self, address: str, values: Mapping[str, str | bytes]) -> None:
        query = urlencode(values)
        status = self.browser.get(f"{address}{'&' if '?' in address else '?'}{query}").status_code
        if status not in {200, 302, 400, 403}:
            self.failed[f"{address} {query[:120]}"] = status


@contextmanager
def attacked(browser: Client) -> Iterator[Asked]:
    """Check every recorded answer and every SQL statement at the end of the test."""
    asked = Asked(browser)
    with CaptureQueriesContext(connection) as queries:
        yield asked
    assert asked.failed == {}
    assert not [query["sql"][:300] for query in queries if _PATTERN.search(query["sql"])]


def test_a_list_offers_only_the_comparisons_of_its_filters(operator: Client) -> None:
    request = operator.get("/admin/").wsgi_request
    open_ones = []
    for model in MODELS:
        owner = site.get_model_admin(model)
        columns = {"pk"} | {name for one in model._meta.get_fields() for name in (one.name, getattr(one, "attname", one.name))}
        paths = columns | {f"{name}__pk" for name in columns} | {f"{name}__id" for name in columns}
        open_ones += [
            f"{path}__{lookup}" for path in paths for lookup in LOOKUPS if owner.lookup_allowed(f"{path}__{lookup}", "1", request)
        ]
        open_ones += [f"{model._meta.label}: pk"] * owner.lookup_allowed("pk", "1", request)
    assert open_ones == []


def test_a_pattern_or_a_part_of_a_date_in_the_url_of_a_list_is_refused(operator: Client) -> None:
    with attacked(operator):
        for query in (
            "pk__regex=((((a%2B)%2B)%2B)%2B$",
            "created_at__year=99999999999999",
            "email__regex=(a*)*$",
            "pk__year=1",
            "connection__name__regex=(",
        ):
            assert operator.get(f"/admin/identity/user/?{query}").status_code == 400, query


@pytest.mark.sized
@pytest.mark.parametrize("model", sample(MODELS, "crafted filters", len(MODELS) // 2), ids=lambda model: model._meta.label_lower)
def test_a_crafted_filter_of_a_list_is_refused_or_finds_nothing(operator: Client, model: type[models.Model]) -> None:
    page: Any = operator.get(list_of(model)).context
    changelist = page.get("cl") if page is not None else None
    offered = {name for spec in getattr(changelist, "filter_specs", ()) for name in spec.expected_parameters() if name}
    request = operator.get("/admin/").wsgi_request
    assert all(site.get_model_admin(model).lookup_allowed(name, "1", request) for name in offered)
    with attacked(operator) as asked:
        for name in offered:
            for value in sample(FILTER_VALUES, name + model._meta.label_lower, 1):
                asked.ask(list_of(model), {name: value})


@pytest.mark.sized
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_crafted_position_or_search_in_a_list_is_refused_or_finds_nothing(bound: Client, value: str | bytes) -> None:
    with attacked(bound) as asked:
        for model in sample(MODELS, repr(value), 3):
            asked.ask(list_of(model), dict.fromkeys(PLACES, value))
        for name in (*PLACES, *NAMES):
            asked.ask("/admin/identity/user/", {name: value})
            asked.ask("/admin/identity/connection/", {name: value})


@pytest.mark.sized
@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_a_crafted_form_of_a_page_is_refused_or_finds_nothing(bound: Client, page: TenantPage) -> None:
    shown = bound.get(page.address).content.decode()
    with attacked(bound) as asked:
        for name in {*_FIELD.findall(shown), *_LINKED.findall(shown), *PLACES}:
            for value in sample(FILTER_VALUES, name + page.label, 2):
                asked.ask(page.address, {name: value})


@pytest.mark.parametrize("query", [{"app_label": "identity"}, {"app_label": "x", "model_name": "y", "field_name": "z"}])
def test_a_crafted_request_for_suggestions_is_refused(operator: Client, query: dict[str, str]) -> None:
    with attacked(operator) as asked:
        for value in VALUES:
            asked.ask(f"{reverse('admin:autocomplete')}?{urlencode(query)}", {"term": value, "page": value})
