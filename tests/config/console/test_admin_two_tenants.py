"""Every model page of the admin, requested with rows of another tenant.

Each page answers 403 or 404, shows no row of that tenant, and changes none of these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.db import connection as database
from django.db import models
from django.test import Client
from django.urls import get_resolver, reverse

from config.console.admin_site import site
from config.server.live_events import watcher_of
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.tenant_scope import TenantScopedAdmin
from identity.models import Connection, Tenant, User
from tests.depth import sample
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant
from tests.management import request

_TABLES = "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id' AND table_schema = 'public'"
MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
OWNED = [model for model in MODELS if getattr(site.get_model_admin(model), "tenant_column", None)]


def label(model: type[models.Model]) -> str:
    return model._meta.label_lower


@pytest.fixture
def mine(committed_db: None) -> Tenant:
    return new_tenant("mine")


@pytest.fixture
def other(committed_db: None) -> Rows:
    """Return another tenant with one row of every model."""
    rows = Rows(new_tenant("other"))
    for model in OWNED:
        rows.of(model)
    return rows


@pytest.fixture
def browser(mine: Tenant) -> Client:
    return browser_of(new_staff(mine))


def list_of(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def patterns(found: list[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the route and name of every URL of the resolver."""
    for pattern in found:
        route = f"{before}{pattern.pattern}"
        if hasattr(pattern, "url_patterns"):
            yield from patterns(pattern.url_patterns, route)
        else:
            yield route, pattern.name or ""


ADDRESSES = [(route, name) for route, name in patterns(get_resolver().url_patterns) if route.startswith("admin/")]
_ROW = "<path:object_id>/"
# URLs that name no row: common pages of the site, and pages whose own tests use two tenants.
_WITHOUT_A_ROW = {
    "index",
    "search",
    "components",
    "login",
    "logout",
    "password_change",
    "password_change_done",
    "jsi18n",
    "autocomplete",
    "app_list",
    "choose_tenant",
    "dismiss_setup",
}
# Other tests cover these pages: streams of a tenant, all dead letters of a filter, the report of a job, the exported audit log, the
# account of staff and its factors, the steps that connect a server, and the branding, texts, second factors, messages and senders of a
# tenant.
_ELSEWHERE = re.compile(
    "events_(live|connections).*|provisioning_deadletter_(kinds|kind_decision|redelivery|export)|provisioning_synchronizationrow_report"
    "|identity_auditentry_export|account(_(app|passkey(_options)?|recovery_codes|rename|remove))?|prove(_options)?|second_factor"
    "|passkey_sign_in(_options)?|provisioning_connect(_.*)?|identity_(messages|senders)(_.*)?|authapi_(branding|texts|second_factors)(_.*)?"
)


def addresses_of(model: type[models.Model], key: Any) -> Iterator[str]:
    """Yield the URL of every page about one row, and of each of its actions."""
    place = f"admin/{model._meta.app_label}/{model._meta.model_name}/{_ROW}"
    page_class = site.get_model_admin(model)
    actions = page_class.object_actions if isinstance(page_class, ObjectActionsAdmin) else ()
    for route, _ in ADDRESSES:
        if route.startswith(place):
            address = "/" + route.replace(_ROW, f"{quote(key)}/")
            yield from [address.replace("<slug:action_name>", action.name) for action in actions] if "<slug:" in address else [address]


def state_of(tenant: Tenant) -> dict[str, list[Any]]:
    """Return every row of the tenant in every table with a column for the tenant."""
    with database.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f"SELECT to_jsonb(t) FROM {database.ops.quote_name(table)} t WHERE tenant_id = %s ORDER BY 1", [tenant.pk])  # noqa: S608
            found[table] = cursor.fetchall()
        return found


def test_the_tests_cover_every_url_of_the_site() -> None:
    pages = {f"{model._meta.app_label}_{model._meta.model_name}_{page}" for model in MODELS for page in ("changelist", "add")}
    rows = {f"admin/{model._meta.app_label}/{model._meta.model_name}/" for model in MODELS}
    for route, name in ADDRESSES:
        is_row = _ROW in route and route[: route.index(_ROW)] in rows
        is_catch_all = route == "admin/(?P<url>.*)$"
        assert is_row or is_catch_all or name in _WITHOUT_A_ROW | pages or _ELSEWHERE.fullmatch(name), route
        assert not is_row or set(re.findall(r"<[^>]+>", route)) <= {_ROW.rstrip("/"), "<slug:action_name>"}, route
    assert len([route for route, _ in ADDRESSES if _ROW in route]) >= 4 * len(MODELS)


def test_every_admin_class_limits_its_rows() -> None:
    assert len(OWNED) > 20
    assert all(isinstance(site.get_model_admin(model), TenantScopedAdmin) for model in MODELS)


def test_pages_of_rows_of_another_tenant_do_not_exist_and_change_nothing(browser: Client, other: Rows) -> None:
    before = state_of(other.tenant)
    for model in OWNED:
        for address in addresses_of(model, other.of(model).pk):
            assert browser.get(address, follow=True).status_code in {403, 404}, address
            answer = browser.post(
                address, {"post": "yes", "name": "taken over", "is_active": "", "password": "quite-another-password-2"}, follow=True
            )
            assert answer.status_code in {403, 404}, address
    assert state_of(other.tenant) == before


def found(browser: Client, model: type[models.Model], query: dict[str, str]) -> set[Any]:
    """Return the keys of the rows that a list shows. An invalid query redirects to the list."""
    page = browser.get(list_of(model), query, follow=True)
    if page.status_code == 400:
        return set()
    assert page.status_code == 200, (label(model), query)
    if "cl" not in page.context:
        # A list with one row redirects to the form of that row.
        return {row.pk for row in [page.context.get("original")] if row is not None}
    return {row.pk for row in page.context["cl"].result_list}


@pytest.mark.sized
def test_no_list_and_no_search_shows_a_row_of_another_tenant(browser: Client, other: Rows) -> None:
    for model in OWNED:
        row = other.of(model)
        assert other.tenant.pk not in browser.get(list_of(model)).content.decode(), label(model)
        queries = ({"q": other.tenant.pk}, {"q": str(row.pk)}, {"q": str(row)}, {"o": "1"}, {"all": ""}, {"tenant_id": other.tenant.pk})
        for query in sample(queries, label(model), 2):
            assert row.pk not in found(browser, model, query), (label(model), query)


def test_no_filter_finds_a_row_of_another_tenant(browser: Client, other: Rows) -> None:
    offered = [
        (model, item[0] if isinstance(item, (list, tuple)) else item) for model in OWNED for item in site.get_model_admin(model).list_filter
    ]
    for model, name in offered:
        if isinstance(name, str):
            value = getattr(other.of(model), getattr(model._meta.get_field(name), "attname", name))
            for lookup in (name, f"{name}__exact", f"{name}__id__exact"):
                assert other.of(model).pk not in found(browser, model, {lookup: str(value)}), (label(model), lookup)


def test_a_bulk_action_leaves_the_rows_of_another_tenant_unchanged(browser: Client, other: Rows) -> None:
    before = state_of(other.tenant)
    for model in OWNED:
        names = [getattr(action, "__name__", action) for action in site.get_model_admin(model).actions or ()]
        for name in names:
            chosen = {
                "action": name,
                ACTION_CHECKBOX_NAME: [str(other.of(model).pk)],
                "post": "yes",
                "confirmed": "yes",
                "shown": "1",
                "reason": "because",
            }
            answer = browser.post(list_of(model), chosen)
            assert answer.status_code in {200, 302, 403}, (label(model), name)
    assert state_of(other.tenant) == before


def test_forms_for_new_rows_offer_no_choice_of_another_tenant(browser: Client, other: Rows) -> None:
    for model in OWNED:
        page = browser.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add"))
        assert page.status_code in {200, 403}, label(model)
        assert other.tenant.pk not in page.content.decode(), label(model)


def test_a_form_refuses_a_choice_of_another_tenant(browser: Client, mine: Tenant, other: Rows) -> None:
    page = browser.post(reverse("admin:identity_user_add"), {"connection": other.of(Connection).pk, "email": "a@mine.test"})

    assert page.status_code == 200
    assert "Select a valid choice" in page.content.decode()
    assert not User.objects.of(mine.pk).exists()


def test_a_posted_tenant_is_ignored(browser: Client, mine: Tenant, other: Rows) -> None:
    answer = browser.post(
        reverse("admin:identity_connection_add"),
        {"name": "smuggled", "strategy": "database", "tenant": other.tenant.pk, "tenant_id": other.tenant.pk},
    )

    assert answer.status_code == 302
    assert Connection.all_tenants.get(name="smuggled").tenant_id == mine.pk


def test_suggestions_contain_nothing_of_another_tenant(browser: Client, other: Rows) -> None:
    asked = 0
    for model in MODELS:
        for name in site.get_model_admin(model).autocomplete_fields:
            query = {"app_label": model._meta.app_label, "model_name": str(model._meta.model_name), "field_name": name, "term": ""}
            answer = browser.get(reverse("admin:autocomplete"), query)
            assert other.tenant.pk not in answer.content.decode(), (label(model), name)
            asked += 1
    assert asked


def test_only_operators_see_rows_without_a_tenant(browser: Client, committed_db: None) -> None:
    for model in MODELS:
        if model not in OWNED:
            assert browser.get(list_of(model)).status_code == 403, label(model)


def test_a_tenant_admin_cannot_select_another_tenant(browser: Client, other: Rows) -> None:
    chooser = reverse("admin:choose_tenant")

    assert browser.get(chooser).status_code == 404
    assert browser.post(chooser, {"tenant": other.tenant.pk}).status_code == 404
    assert other.tenant.pk not in browser.get(reverse("admin:index")).content.decode()


def test_an_operator_who_selected_a_tenant_sees_only_that_tenant(mine: Tenant, other: Rows) -> None:
    browser = browser_of(new_staff(None))
    browser.post(reverse("admin:choose_tenant"), {"tenant": mine.pk})

    assert browser.get(reverse("admin:identity_user_change", args=(other.of(User).pk,))).status_code == 404
    assert other.tenant.pk not in browser.get(list_of(User)).content.decode()

    browser.post(reverse("admin:choose_tenant"), {"tenant": ""})
    assert browser.get(reverse("admin:identity_user_change", args=(other.of(User).pk,))).status_code == 200


def test_the_live_stream_of_another_tenant_does_not_exist(browser: Client, mine: Tenant, other: Rows) -> None:
    name = settings.SESSION_COOKIE_NAME
    cookie = f"{name}={browser.cookies[name].value}"
    address = f"/admin/events/live/{other.tenant.pk}/stream"

    assert watcher_of(mine.pk, cookie).tenant_id == mine.pk
    assert request("GET", address, "", {"host": "localhost", "cookie": cookie}, b"").status == 404
    assert request("GET", address, "", {"host": "localhost"}, b"").status == 401


def test_the_host_of_a_request_does_not_change_the_visible_rows(mine: Tenant, other: Rows) -> None:
    browser = browser_of(new_staff(mine))

    assert browser.get(list_of(User), headers={"host": f"{other.tenant.pk}.example.test"}).status_code == 404
    assert other.tenant.pk not in browser.get(list_of(User), headers={"host": "127.0.0.1"}).content.decode()
