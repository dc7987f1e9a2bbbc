"""The buttons and menus in the header of object pages, in a real browser.

The button of a group sets the focus on a form field, and the menu of an event copies its message.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from events.models import LogEntry
from identity.models import GroupMember, Tenant, User
from tests.factories.organizations import make_group, make_role
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Page
from tests.peers.test_admin_of_the_stream import browser, user, visit, web

__all__ = ["browser", "user", "visit", "web"]

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]


def test_the_button_of_a_group_sets_the_focus_on_the_field_for_a_member(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    group = make_group(tenant, "Engineers")
    page = visit(reverse("admin:identity_group_change", args=(quote(group.pk),)))
    page.click(".object-acts > a.button")
    page.until("document.activeElement.id === 'id_add-member-user'")
    page.send("Input.insertText", text="ada@example.test")
    page.press("Enter")
    page.until("document.querySelector('.messagelist') !== null && document.readyState === 'complete'")

    assert GroupMember.objects.of(tenant.pk).get().user_id == user.pk
    assert page.complaints == []


def test_the_menu_of_an_event_copies_its_message(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=tenant.pk, position=2)
    page = visit(reverse("admin:events_logentry_change", args=(quote(entry.pk),)))
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; true")
    page.click(".object-acts summary")
    page.click("[data-copy-of]")
    page.until("document.querySelector('[data-copy-of]').classList.contains('copied')")
    assert page.evaluate("document.querySelector('[data-copy-of]').textContent") == "Copied"
    assert page.evaluate("document.querySelector('[role=status].visually-hidden').textContent") == "Copied"
    page.until("document.querySelector('[data-copy-of]').textContent === 'Copy as JSON'")

    assert json.loads(page.evaluate("window.copied")) == json.loads(bytes(entry.event.body))
    assert page.complaints == []


def test_the_menu_of_an_event_says_that_the_browser_refused_to_copy(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=tenant.pk, position=2)
    page = visit(reverse("admin:events_logentry_change", args=(quote(entry.pk),)))
    page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); true")
    page.click(".object-acts summary")
    page.click("[data-copy-of]")
    page.until("document.querySelector('[data-copy-of]').textContent === 'Not copied: the browser refused'")

    assert page.evaluate("document.querySelector('[data-copy-of]').classList.contains('copied')") is False
    assert page.complaints == []


def test_the_menu_of_an_event_has_no_copy_button_without_script(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=tenant.pk, position=2)
    page = visit("/admin/")
    page.without_script()
    page.open(f"{page.evaluate('location.origin')}{reverse('admin:events_logentry_change', args=(quote(entry.pk),))}")
    hidden = page.evaluate("getComputedStyle(document.querySelector('[data-copy-of]')).display")
    page.without_script(is_off=False)

    assert hidden == "none"


@pytest.mark.parametrize("kind", ["group", "role", "event", "api", "test"])
def test_each_page_fits_every_screen_and_is_accessible(visit: Callable[[str], Page], tenant: Tenant, user: User, kind: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-peers")
    page = visit(address_of(kind, tenant))
    assert barriers_of(page) == []


def address_of(kind: str, tenant: Tenant) -> str:
    if kind == "group":
        return reverse("admin:identity_group_change", args=(quote(make_group(tenant, "Engineers").pk),))
    if kind == "role":
        return reverse("admin:identity_role_change", args=(quote(make_role(tenant, "Author").pk),))
    if kind == "event":
        entry = LogEntry.objects.get(tenant_id=tenant.pk, position=2)
        return reverse("admin:events_logentry_change", args=(quote(entry.pk),))
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://orders.example.test/", scopes=[{"value": "read:orders"}])
    client, _ = create_client(tenant_id=tenant.pk, name="Robot", grant_types=["client_credentials"])
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:orders"])
    return reverse(f"admin:authapi_apiresource_{'test' if kind == 'test' else 'change'}", args=(quote(api.pk),))
