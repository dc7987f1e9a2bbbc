"""A settings form that was opened before another request changed the same API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as Browser
from django.urls import reverse

from authapi.models import ApiResource, Permission
from authapi.services.api_resources import create_api_resource
from authapi.services.permissions import Named, add_role_permissions
from authapi.services.resource_changes import add_scope, update_api_resource
from identity.models import Tenant
from tests.authapi.test_sign_in_pages import form_of
from tests.factories.admin import browser_of, new_staff
from tests.factories.organizations import make_role

IDENTIFIER = "https://orders.example.test/"


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def api(tenant: Tenant) -> ApiResource:
    scopes = [{"value": "read:orders", "description": "Read orders"}, {"value": "drop:orders"}]
    return create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, name="Orders", scopes=scopes)


def change_page(row: ApiResource) -> str:
    return reverse("admin:authapi_apiresource_change", args=(quote(row.pk),))


def save(browser: Browser, api: ApiResource, sent: dict[str, Any]) -> None:
    answer = browser.post(change_page(api), sent)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    api.refresh_from_db()


def test_the_page_contains_the_scopes_that_it_shows(browser: Browser, api: ApiResource) -> None:
    page = browser.get(change_page(api)).content.decode()
    assert '<input type="hidden" name="initial-scopes" value="read:orders Read orders\ndrop:orders"' in page


def test_a_save_keeps_a_permission_that_was_added_while_the_form_was_open(browser: Browser, api: ApiResource) -> None:
    stale = form_of(browser, change_page(api), name="Purchases")
    add_scope(tenant_id=api.tenant_id, resource_id=api.pk, value="write:orders")
    role = make_role(Tenant.objects.get(pk=api.tenant_id), "Clerk")
    add_role_permissions(tenant_id=api.tenant_id, role_id=role.pk, permissions=[Named(IDENTIFIER, "write:orders")])

    save(browser, api, stale)

    assert (api.name, api.scope_values) == ("Purchases", ("read:orders", "drop:orders", "write:orders"))
    assert Permission.objects.of(api.tenant_id).filter(role_permissions__role=role).exists()


def test_a_save_does_not_restore_a_permission_that_was_removed_meanwhile(browser: Browser, api: ApiResource) -> None:
    stale = form_of(browser, change_page(api), name="Purchases")
    update_api_resource(tenant_id=api.tenant_id, resource_id=api.pk, changes={"scopes": api.scopes[:1]})

    save(browser, api, stale)

    assert api.scope_values == ("read:orders",)


def test_the_changed_lines_of_an_old_form_are_applied_to_the_current_scopes(browser: Browser, api: ApiResource) -> None:
    stale = form_of(browser, change_page(api), scopes="read:orders See orders\nsend:orders Send orders")
    add_scope(tenant_id=api.tenant_id, resource_id=api.pk, value="write:orders")

    save(browser, api, stale)

    assert api.scope_descriptions == {"write:orders": "", "read:orders": "See orders", "send:orders": "Send orders"}


def test_an_old_form_that_adds_an_existing_permission_changes_the_description_of_the_permission(browser: Browser, api: ApiResource) -> None:
    stale = form_of(browser, change_page(api), scopes="read:orders Read orders\ndrop:orders\nwrite:orders Write orders")
    add_scope(tenant_id=api.tenant_id, resource_id=api.pk, value="write:orders")

    save(browser, api, stale)

    assert api.scope_descriptions == {"read:orders": "Read orders", "drop:orders": "", "write:orders": "Write orders"}


def test_a_form_that_does_not_send_back_the_shown_scopes_removes_no_scope(browser: Browser, api: ApiResource) -> None:
    sent = form_of(browser, change_page(api), scopes="send:orders")
    del sent["initial-scopes"]

    save(browser, api, sent)

    assert api.scope_values == ("read:orders", "drop:orders", "send:orders")


def test_the_form_refuses_more_permissions_than_the_management_interface_accepts(browser: Browser, api: ApiResource) -> None:
    lines = "\n".join(f"scope:{number}" for number in range(1001))
    for address in (change_page(api), reverse("admin:authapi_apiresource_add")):
        answer = browser.post(address, form_of(browser, address, identifier="https://other.example.test/", scopes=lines))
        assert dict(answer.context["adminform"].form.errors) == {"scopes": ["An API has at most 1000 permissions."]}
    api.refresh_from_db()
    assert len(api.scopes) == 2
    save(browser, api, form_of(browser, change_page(api), scopes=lines.rpartition("\n")[0]))
    assert len(api.scopes) == 1000
