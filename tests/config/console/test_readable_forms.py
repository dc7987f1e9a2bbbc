"""Staff who may view a row but not change the row see the values of its form as text."""

from __future__ import annotations

from typing import Any

import lxml.html
import pytest
from django.db import models
from django.test import Client as Browser

from authapi.models import Client, TenantSettings
from authapi.services.clients import create_client
from config.console.admin_site import site
from foundation.admin.readable_form import NEVER_SHOWN
from identity.admin.service_admin import ServiceAdmin
from identity.models import Tenant, User
from identity.staff_roles import AUDITOR
from provisioning.services.actions import create_action
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.admin_pages import page_of_row

MODELS = [model for model, page in site._registry.items() if isinstance(page, ServiceAdmin)]


@pytest.fixture
def auditor(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant, role=AUDITOR))


def values_on(browser: Browser, row: models.Model) -> dict[str, str]:
    """Return the value of each line of the page, by its label."""
    page: Any = lxml.html.fromstring(browser.get(page_of_row(row)).content.decode())
    found: dict[str, str] = {}
    for line in page.xpath("//div[contains(@class, 'flex-container')][.//*[contains(@class, 'readonly')]]"):
        for broken in line.iter("br"):
            broken.tail = f"\n{broken.tail or ''}"
        label = line.xpath("string(.//label)").strip().removesuffix(":")
        found[label] = line.xpath("string(.//*[contains(@class, 'readonly')])").strip()
    return found


def test_the_values_of_a_client_are_shown_with_the_labels_of_its_form(auditor: Browser, tenant: Tenant) -> None:
    settings: dict[str, Any] = {"web_origins": ["https://a.example.test", "https://b.example.test"], "client_metadata": {"team": "shop"}}
    client, _ = create_client(tenant_id=tenant.pk, name="Shop <1>", grant_types=["authorization_code"], settings=settings)

    shown = values_on(auditor, client)

    assert shown["Name"] == "Shop <1>"
    assert shown["Web origins"] == "https://a.example.test\nhttps://b.example.test"
    assert shown["Metadata"] == "team: shop"
    assert shown["Require pushed requests"] == "No"
    assert shown["Signature of ID tokens"].startswith("RS256, ")


def test_the_settings_of_a_tenant_are_shown_with_their_defaults(auditor: Browser, tenant: Tenant) -> None:
    shown = values_on(auditor, Rows(tenant).of(TenantSettings))

    assert shown["Failures before a block"] == "10"
    assert shown["When the browser is closed"] == "Sessions continue"
    assert shown["Secret of the webhook"] == NEVER_SHOWN


@pytest.mark.parametrize("model", MODELS)
def test_no_line_shows_a_missing_value_as_none(auditor: Browser, tenant: Tenant, model: type[models.Model]) -> None:
    row = Rows(tenant).of(model)
    answer = auditor.get(page_of_row(row))
    if answer.status_code == 200:
        assert {label: text for label, text in values_on(auditor, row).items() if text in ("None", "[]", "{}")} == {}


def test_secrets_of_an_action_are_listed_by_name_and_have_no_empty_line(auditor: Browser, tenant: Tenant) -> None:
    secrets = {"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": "never-to-be-seen-4711"}
    action = create_action(tenant_id=tenant.pk, name="SCIM", template="scim-user-provisioning", secrets=secrets)

    shown = values_on(auditor, action)

    assert shown["Stored values"] == "Set: SCIM_BASE_URL, SCIM_BEARER_TOKEN."
    assert [label for label in shown if label.upper().startswith("SCIM") or "secrets" in label] == []
    assert not any(value in " ".join(shown.values()) for value in secrets.values())


def test_a_page_without_permission_to_change_has_no_input(auditor: Browser, tenant: Tenant) -> None:
    for model in (Client, User):
        page: Any = lxml.html.fromstring(auditor.get(page_of_row(Rows(tenant).of(model))).content.decode())
        form = page.xpath("//form[.//*[contains(@class, 'readonly')]]")
        assert [field.name for one in form for field in one.inputs if field.get("type") != "hidden"] == []
