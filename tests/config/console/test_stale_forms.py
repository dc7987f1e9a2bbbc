"""If another staff account changed a value after a page was opened, the page must be saved twice to overwrite that value."""

from __future__ import annotations

import json
from typing import Any

import lxml.html
import pytest
from django.test import Client as Browser
from django.urls import reverse

from authapi.models import Client
from authapi.services.clients import create_client, update_client
from config.console.admin_site import site
from foundation.admin.shown_values import INPUT
from identity.admin.service_admin import ServiceAdmin
from identity.models import Tenant
from provisioning.engine.streams import create_stream
from provisioning.models import Action
from provisioning.services.actions import create_action, update_action
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.admin_pages import page_of_row

WEBHOOK = {
    "webhook_endpoint": "https://hooks.example.test/in",
    "webhook_authorization": {"method": "bearer", "token": "never-to-be-seen-again-4711"},
}
STALE = "This value has changed since you opened the page."
# The pages of settings, which are not pages of a row. For each page: its route, the values of the route, the button that saves, a field,
# and two new values of the field.
PAGES = {
    "branding": ("admin:authapi_branding", {}, {"save": "Save"}, "borders__widget_corner_radius", "7", "9"),
    "second factors": ("admin:authapi_second_factors", {}, {}, "remembered_days", "11", "12"),
    "texts": (
        "admin:authapi_texts_screen",
        {"prompt": "login", "screen": "login", "language": "en"},
        {},
        "pageTitle",
        "Log in here",
        "Log in there",
    ),
    "message": ("admin:identity_messages_one", {"name": "welcome_email"}, {}, "subject", "Welcome here", "Welcome there"),
}


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def client(tenant: Tenant) -> Client:
    made, _ = create_client(tenant_id=tenant.pk, name="Shop", redirect_uris="https://shop.example.test/callback")
    return made


def opened(browser: Browser, address: str) -> dict[str, Any]:
    """Return the fields that a browser sends if it saves the form with the hidden digests unchanged."""
    answer = browser.get(address)
    return sent_by(answer.content.decode())


def sent_by(page: str) -> dict[str, Any]:
    root: Any = lxml.html.fromstring(page)
    for form in root.forms:
        if INPUT in form.fields:
            sent: dict[str, Any] = {}
            for name, value in form.form_values():
                # HTML ignores a line break at the start of a textarea.
                sent.setdefault(name, []).append(value.removeprefix("\n"))
            # lxml leaves out text fields without a value, but browsers send these fields.
            empty = form.xpath(".//input[@name and not(@value) and not(@disabled) and not(@type='checkbox' or @type='radio')]")
            return {**{field.name: "" for field in empty}, **sent}
    raise AssertionError("The page has no form with digests.")


def test_a_value_changed_after_the_page_was_opened_is_shown_and_kept(browser: Browser, client: Client) -> None:
    address = page_of_row(client)
    first = opened(browser, address)
    second = dict(first)

    assert browser.post(address, first | {"name": "Shop of Ada"}).status_code == 302
    refused = browser.post(address, second | {"name": "Shop of Bob"})

    client.refresh_from_db()
    assert client.name == "Shop of Ada"
    assert refused.status_code == 200
    text = refused.content.decode()
    assert f"{STALE} The saved value is now: Shop of Ada. To replace the saved value with your value, save again." in text
    assert 'value="Shop of Bob"' in text
    assert "<h1>Shop of Ada" in text


def test_an_unchanged_field_of_a_stale_form_does_not_undo_the_change(browser: Browser, client: Client) -> None:
    address = page_of_row(client)
    stale = opened(browser, address)
    update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"name": "Renamed"})

    refused = browser.post(address, stale | {"redirect_uris": "https://shop.example.test/other"})

    client.refresh_from_db()
    assert refused.status_code == 200
    assert (client.name, client.redirect_uris) == ("Renamed", "https://shop.example.test/callback")


def test_saving_the_form_a_second_time_replaces_the_value(browser: Browser, client: Client) -> None:
    address = page_of_row(client)
    stale = opened(browser, address)
    update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"name": "Renamed"})
    refused = browser.post(address, stale | {"name": "Shop of Bob"})

    assert browser.post(address, sent_by(refused.content.decode())).status_code == 302
    client.refresh_from_db()
    assert client.name == "Shop of Bob"


def test_the_same_change_by_two_people_is_not_refused(browser: Browser, client: Client) -> None:
    address = page_of_row(client)
    stale = opened(browser, address)
    update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes={"name": "Renamed"})

    assert browser.post(address, stale | {"name": "Renamed"}).status_code == 302


@pytest.mark.parametrize("digests", ["", "[]", "{", "null", "7", "[" * 10_000])
def test_a_request_without_readable_digests_is_not_checked(browser: Browser, client: Client, digests: str) -> None:
    address = page_of_row(client)

    assert browser.post(address, opened(browser, address) | {INPUT: digests, "name": "Renamed"}).status_code == 302
    client.refresh_from_db()
    assert client.name == "Renamed"


@pytest.mark.parametrize("page", PAGES)
def test_a_stale_form_of_a_settings_page_is_refused(browser: Browser, page: str) -> None:
    name, place, button, field, ours, theirs = PAGES[page]
    address = reverse(name, kwargs=place)
    stale = opened(browser, address)

    assert browser.post(address, opened(browser, address) | button | {field: theirs}).status_code == 302
    refused = browser.post(address, stale | button | {field: ours})

    assert refused.status_code == 200
    assert f"{STALE} The saved value is now: {theirs}." in refused.content.decode()
    assert opened(browser, address)[field] == [theirs]


def test_a_mapping_changed_after_the_page_was_opened_is_kept(browser: Browser, tenant: Tenant) -> None:
    action = create_action(tenant_id=tenant.pk, name="SCIM", template="scim-user-provisioning")
    address = reverse("admin:provisioning_action_mapping", args=(action.pk,))
    stale = opened(browser, address)
    theirs = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "email"}]
    update_action(tenant_id=tenant.pk, action_id=action.pk, changes={"mapping": theirs})

    refused = browser.post(address, stale | {"save": "1"})

    assert refused.status_code == 200
    assert "The mapping has changed since you opened the page." in refused.content.decode()
    assert len(Action.objects.of(tenant.pk).get(pk=action.pk).mapping or []) == len(theirs)


def test_the_page_contains_digests_only_of_values_that_it_shows(browser: Browser, tenant: Tenant) -> None:
    stream = create_stream(
        tenant_id=tenant.pk, name="hook", subscriptions=["user.created"], destination_type="webhook", destination=WEBHOOK
    )
    names = set(json.loads(opened(browser, page_of_row(stream))[INPUT][0]))

    assert {"name", "webhook_endpoint"} <= names
    assert names & {"token", "password", "header_value", "signing_secret"} == set()


def test_an_unchanged_form_is_never_stale(committed_db: None, tenant: Tenant) -> None:
    rows, operator = Rows(tenant), browser_of(new_staff(None))
    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    seen = []
    for model, admin in site._registry.items():
        if isinstance(admin, ServiceAdmin):
            address = page_of_row(rows.of(model))
            page = operator.get(address).content.decode()
            if f'name="{INPUT}"' in page:
                seen.append(model)
                assert STALE not in operator.post(address, sent_by(page)).content.decode(), address

    assert len(seen) > 5
