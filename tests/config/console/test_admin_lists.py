"""The cost of the lists of the admin. Each page of a growing table reads at most a bounded number of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django import forms
from django.db import connection, connections, models, transaction
from django.test import Client
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from config.console.admin_site import site
from foundation.admin.keyset_list import KeysetChangeList
from identity.admin.tenant_scope import TenantScopedAdmin
from tests.depth import sample
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant
from tests.factories.filled_tables import fill

ROWS = 1_600
TENANTS = 4
# `BOUND` is the maximum number of rows that one page may read in this test, counted over all tables. A tenant has 400 rows.
LIMIT = 60
BOUND = 260
# The number of rows before a page in the middle of a list: more than `BOUND`, so a page that reads these rows fails the test.
FAR = 350

MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
GROWING = [model for model in MODELS if site.get_model_admin(model).grows]  # type: ignore[attr-defined]
# Models whose lists need no bound: staff create their rows one by one, or a tenant, stream or process has only a few of them.
SMALL = {
    "authapi.apiresource",
    "authapi.client",
    "authapi.clientcredential",
    "authapi.clientgrant",
    "authapi.edgekey",
    "authapi.initialaccesstoken",
    "authapi.permission",
    "authapi.samlkey",
    "authapi.signingkey",
    "authapi.tenantsettings",
    "authapi.tokenexchangeprofile",
    "events.eventstream",
    "events.head",
    "identity.connection",
    "identity.customdomain",
    "identity.formertenant",
    "identity.staff",
    "identity.tenant",
    "provisioning.action",
    "provisioning.actionsecret",
    "provisioning.actionversion",
    "provisioning.breaker",
    "provisioning.deletionguard",
    "provisioning.ignoredkind",
    "provisioning.sweeper",
    "provisioning.trial",
}


@dataclass
class Filled:
    """The copied rows of each model, and browsers that see one tenant or all tenants."""

    rows: Rows
    bound: Client
    unbound: Client


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Filled]:
    with django_db_blocker.unblock():
        tenants = [new_tenant() for _ in range(TENANTS)]
        with transaction.atomic():
            rows = Rows(tenants[0])
            seeds = {model: rows.of(model) for model in MODELS if getattr(site.get_model_admin(model), "tenant_column", None)}
            fill([seed for model, seed in seeds.items() if model._meta.label_lower not in _NOT_FILLED], tenants=tenants, rows=ROWS)
            yield Filled(rows, browser_of(new_staff(tenants[0])), browser_of(new_staff(None)))
            transaction.set_rollback(True)
        connections.close_all()


_NOT_FILLED = {"identity.tenant", "events.head", "authapi.tenantsettings"}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower every limit, so that a list that ignores the limit reads too many rows."""
    for place, value in {
        "foundation.admin.keyset_list.WALK": LIMIT,
        "foundation.admin.keyset_list.FOUND": LIMIT,
        "identity.admin.paged_by_keys.FOUND": LIMIT,
        "identity.admin.bulk_progress.FOUND": LIMIT,
        "foundation.admin.keyset_list.COUNT_LIMIT": LIMIT,
        "foundation.admin.list_filters._ROWS_LOOKED_AT": LIMIT,
        "events.log.browsing.WALK": LIMIT,
        "events.admin.stored.FOUND": LIMIT,
        "events.admin.stored._NEWEST": LIMIT,
        "events.admin.stored._ENTITY_EVENTS": LIMIT,
        "authapi.logs.browsing.WALK": LIMIT,
        "foundation.database.keyset_pages.WALK": LIMIT,
    }.items():
        monkeypatch.setattr(place, value)
    monkeypatch.setattr("foundation.admin.bounded_paginator.bounded_count.__defaults__", (LIMIT,))


@dataclass
class Watch:
    """Runs EXPLAIN for each query of a page, and records the queries that read too many rows."""

    faults: list[str] = field(default_factory=list)

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("SELECT"):
            with connection.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
                found = cursor.fetchone()[0]
            plan = found if isinstance(found, list) else json.loads(found)
            self.faults += [f"{fault}: {sql}" for fault in faults_of(plan[0]["Plan"])]
        return result


def faults_of(node: dict[str, Any]) -> Iterator[str]:
    table = node.get("Relation Name", "")
    if table in _WATCHED:
        removed = sum(
            node.get(name, 0) for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter")
        )
        touched = (node["Actual Rows"] + removed) * node["Actual Loops"]
        if touched > BOUND:
            yield f"{node['Node Type']} looked at {touched:.0f} rows of {table}"
        # The plan does not count the rows that an index scan skips.
        condition = node.get("Index Cond", "")
        if set(re.findall(r"\((\(?\w+\)?(?:::text)?) = ", condition)) & set(re.findall(r"ROW\((\(?\w+\)?(?:::text)?),", condition)):
            yield f"{node['Index Name']} is read from its start: {condition}"
        # From version 18, PostgreSQL may skip from one tenant to the next. `Index Searches` counts these skips.
        leaps = node.get("Index Searches", 1) > 1
        if condition and not leaps and (leading := _leading_column(node["Index Name"])) not in condition:
            yield f"{node['Index Name']} is read from end to end, without {leading}: {condition}"
    for child in node.get("Plans", ()):
        yield from faults_of(child)


def _leading_column(index: str) -> str:
    with connection.connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass, 1, true)", [index])
        found = str(cursor.fetchone()[0])
    # In an index definition, an expression has other parentheses than in a condition, so keep only its column.
    return re.sub(r".*\((\w+)::.*", r"\1", found)


_WATCHED = {model._meta.db_table for model in GROWING}


@contextmanager
def watched() -> Iterator[Watch]:
    watch = Watch()
    # A sequential scan is often cheapest in small tables. Raise the cost of rows, so that the planner decides as it does with millions of
    # rows.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL cpu_tuple_cost = 10; SET LOCAL cpu_index_tuple_cost = 10")
        cursor.execute("SET LOCAL random_page_cost = 1")
    with connection.execute_wrapper(watch):
        yield watch


def questions_of(answer: Any, page: TenantScopedAdmin[Any], row: Any) -> Iterator[dict[str, str]]:
    """Yield URL parameters of the list: each filter with its first values, each searched field, and the pages after and before a row."""
    listed = answer.context_data["cl"]
    for spec in listed.filter_specs:
        for choice in list(spec.choices(listed))[1:3]:
            yield {"": choice["query_string"].removeprefix("?")}
    if page.get_search_fields(answer.wsgi_request):
        yield {"q": "nothing-like-this"}
    for name in page.get_search_fields(answer.wsgi_request):
        yield {"q": str(_value_at(row, name.removesuffix("__exact")))}
    if isinstance(listed, KeysetChangeList):
        key = listed.order.written(listed.order.key_of(row))
        yield from ({"after": key}, {"before": key}, {"after": key, "q": "nothing-like-this"})
        far = listed.order.sort(listed.root_queryset)[FAR : FAR + 1]
        yield from ({"after": listed.order.written(listed.order.key_of(place))} for place in far)
    elif hasattr(listed, "search"):
        yield from _asked_of_log(listed.search, row)


def _asked_of_log(search: forms.Form, row: Any) -> Iterator[dict[str, str]]:
    """Yield URL parameters for each field of the search form of a log. Some values match rows, and others match none."""
    for name, asked in search.fields.items():
        choices: Any = getattr(asked, "choices", ())
        if choices:
            yield {name: str(list(choices)[-1][0])}
        elif isinstance(asked, forms.DateTimeField):
            yield {name: "2020-01-01T00:00"}
        elif isinstance(asked, forms.UUIDField):
            yield {name: str(uuid4())}
        elif isinstance(asked, forms.GenericIPAddressField):
            yield {name: "192.0.2.1"}
        else:
            yield from ({name: value} for value in ("1", "database|nobody", str(getattr(row, name, "1")) or "1"))


def _value_at(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


@pytest.mark.sized
@pytest.mark.parametrize(
    ("model", "is_bound"),
    [
        pytest.param(model, is_bound, id=f"{model._meta.label_lower}-{'one tenant' if is_bound else 'all tenants'}")
        for model in GROWING
        for is_bound in sample([True, False], model._meta.label_lower, 1)
    ],
)
def test_no_page_of_a_list_reads_more_than_a_bounded_number_of_rows(
    filled: Filled, narrow: None, model: type[models.Model], *, is_bound: bool
) -> None:
    browser = filled.bound if is_bound else filled.unbound
    page: Any = site.get_model_admin(model)
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    with watched() as watch:
        first = browser.get(address)
    assert first.status_code in {200, 403}
    questions = list(questions_of(first, page, filled.rows.of(model))) if first.status_code == 200 else []
    with connection.execute_wrapper(watch):
        for asked in sample(questions, f"{address} {is_bound}", 6):
            query = asked.get("") or urlencode(asked)
            assert browser.get(f"{address}?{query}").status_code == 200, query

    assert watch.faults == []


def test_every_list_without_keyset_pages_has_rows_that_staff_create_by_hand() -> None:
    assert {model._meta.label_lower for model in MODELS} - {model._meta.label_lower for model in GROWING} == SMALL
