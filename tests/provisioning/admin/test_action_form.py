"""The form of an action. It shows options as fields and errors at their fields. Secrets can be written and not read."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from identity.models import Tenant
from provisioning.actions.secrets import open_secrets
from provisioning.models import Action
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN

ADD = "admin:provisioning_action_add"
NEW = {"name": "to scim", "template": "scim-user-provisioning", "SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": TOKEN}


@pytest.fixture(autouse=True)
def _plain(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def action(tenant: Tenant) -> Action:
    secrets = {"SCIM_BASE_URL": "https://scim.example.test/v2", "SCIM_BEARER_TOKEN": TOKEN, "SCIM_TIMEOUT_MS": "700"}
    return ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets)


def page(action: Action) -> str:
    return reverse("admin:provisioning_action_change", args=(quote(action.pk),))


def shown(answer: Any) -> str:
    return html.unescape(answer.content.decode())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SCIM_BASE_URL", "ftp://scim.example.test", "SCIM_BASE_URL must be a URL"),
        ("SCIM_BASE_URL", "https://scim.example.test/v2?tenant=a", "must have no query"),
        ("SCIM_BEARER_TOKEN", "Bearer abc", "SCIM_BEARER_TOKEN must be printable ASCII without spaces"),
        ("SCIM_TIMEOUT_MS", "1.5", "SCIM_TIMEOUT_MS must be a whole number from 1 to 20000"),
        ("SCIM_MAX_RETRIES", "-1", "SCIM_MAX_RETRIES must be a whole number from 0 to 10"),
        ("update_mode", "POST", "Select a valid choice"),
        ("scope", "email | ]", "is not understood"),
        ("scope", "nope(email)", "There is no function nope()"),
        ("requests_per_second", "0.1", "greater than or equal to 0.5"),
        ("requests_per_second", "nan", "Enter a number"),
        ("requests_per_second", "2000", "less than or equal to 1000"),
    ],
)
def test_invalid_values_are_reported_at_their_field_and_nothing_is_created(
    name: str, value: str, sentence: str, browser: Client, tenant: Tenant
) -> None:
    text = shown(browser.post(reverse(ADD), {**NEW, name: value}))

    assert sentence in text
    errors = text.partition(f'id="id_{name}_error"')[2] or text.partition(f'name="{name}"')[0].rpartition("errorlist")[2]
    assert sentence in errors
    assert not Action.objects.of(tenant.pk).exists()
    assert TOKEN not in text


def test_options_are_fields_and_only_values_other_than_the_default_are_stored(browser: Client, tenant: Tenant) -> None:
    sent = {
        **NEW,
        "update_mode": "patch_per_attribute",
        "upsert": "on",
        "enterprise": "on",
        "requests_per_second": "2.5",
        "scope": " app_metadata.vip ",
    }
    assert browser.post(reverse(ADD), sent).status_code == 302
    action = Action.objects.of(tenant.pk).get()
    kept = {
        "upsert": True,
        "enterprise": True,
        "scope": "app_metadata.vip",
        "update_mode": "patch_per_attribute",
        "requests_per_second": 2.5,
    }
    assert action.options == kept

    text = browser.get(page(action)).content.decode()
    assert '<option value="patch_per_attribute" selected>' in text
    assert 'name="upsert" id="id_upsert" checked' in text.replace(' aria-describedby="id_upsert_helptext"', "")
    assert 'name="requests_per_second" value="2.5"' in text
    assert 'name="scope" value="app_metadata.vip"' in text

    assert browser.post(page(action), {"name": "to scim", "update_mode": "put", "requests_per_second": ""}).status_code == 302
    action.refresh_from_db()
    assert action.options == {"update_mode": "put"}


def test_selecting_a_known_server_sets_defaults_and_shows_notes(browser: Client, tenant: Tenant) -> None:
    assert "Select a valid choice" in shown(browser.post(reverse(ADD), {**NEW, "server_profile": "nobody"}))
    assert browser.post(reverse(ADD), {**NEW, "server_profile": "slack"}).status_code == 302
    action = Action.objects.of(tenant.pk).get()

    assert action.options == {"server_profile": "slack"}
    assert "The SCIM applications of an organization share one limit." in shown(browser.get(page(action)))


def test_saving_an_unchanged_form_does_not_change_options_or_secrets(browser: Client, action: Action) -> None:
    before = open_secrets(action)
    assert browser.post(page(action), {"name": "to scim"}).status_code == 302

    action.refresh_from_db()
    assert (action.options, open_secrets(action)) == ({}, before)


def test_a_secret_is_removed_by_its_name_and_its_default_applies_again(browser: Client, action: Action) -> None:
    sent = {"name": "to scim", "update_mode": "put", "removed_secrets": ["SCIM_TIMEOUT_MS"]}
    both = shown(browser.post(page(action), {**sent, "SCIM_TIMEOUT_MS": "800"}))
    assert "cannot be entered and removed at the same time" in both
    assert browser.post(page(action), sent).status_code == 302

    assert "SCIM_TIMEOUT_MS" not in open_secrets(Action.objects.of(action.tenant_id).get(pk=action.pk))


def test_the_form_offers_to_remove_secrets_only_if_a_secret_is_stored(browser: Client, tenant: Tenant, action: Action) -> None:
    bare = ActionFactory.create(tenant_id=tenant.pk, name="bare", template="scim-user-provisioning", secrets={})
    assert "Remove secrets" in shown(browser.get(page(action)))
    assert "Remove secrets" not in shown(browser.get(page(bare)))


def test_changing_the_server_requires_its_token(browser: Client, action: Action) -> None:
    before = open_secrets(action)
    sent = {"name": "to scim", "SCIM_BASE_URL": "https://other.example.test/v2"}
    text = shown(browser.post(page(action), sent))
    assert "enter SCIM_BEARER_TOKEN as well" in text.partition('id="id_SCIM_BEARER_TOKEN_error"')[2] or (
        "enter SCIM_BEARER_TOKEN as well" in text.partition('name="SCIM_BEARER_TOKEN"')[0].rpartition("errorlist")[2]
    )
    assert open_secrets(action) == before
    assert browser.post(page(action), {**sent, "SCIM_BEARER_TOKEN": "another"}).status_code == 302
    assert open_secrets(Action.objects.of(action.tenant_id).get()) == {
        **before,
        "SCIM_BASE_URL": sent["SCIM_BASE_URL"],
        "SCIM_BEARER_TOKEN": "another",
    }


def test_the_page_warns_of_missing_secrets_and_of_runs_longer_than_the_time_budget(browser: Client, tenant: Tenant) -> None:
    secrets = {"SCIM_BASE_URL": "https://scim.example.test", "SCIM_TIMEOUT_MS": "5000"}
    action = ActionFactory.create(tenant_id=tenant.pk, name="slow", template="scim-user-provisioning", secrets=secrets)
    text = shown(browser.get(page(action)))

    assert "Missing: SCIM_BEARER_TOKEN</span> The action cannot be deployed without them." in text
    assert "3 x (2 x 5000 ms + 250 ms of pauses) = 30750 ms" in text


def test_an_action_within_its_budget_has_no_warning(browser: Client, action: Action) -> None:
    text = shown(browser.get(page(action)))

    assert "Shorter than the time limit of a run." in text
    assert "Missing:" not in text
    assert TOKEN not in text


def test_an_action_with_an_entry_point_has_its_own_options(browser: Client, tenant: Tenant) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    sent = {"name": "own", "template": "", "entry_point": path, "options": '{"depth": 3}', "other_secrets": '{"KEY": "abc-def"}'}
    assert browser.post(reverse(ADD), sent).status_code == 302
    action = Action.objects.of(tenant.pk).get()
    assert (action.options, open_secrets(action)) == ({"depth": 3}, {"KEY": "abc-def"})

    text = shown(browser.get(page(action)))
    assert 'name="other_secrets-name-0" value="KEY" readonly' in text
    assert "abc-def" not in text
    assert "id_update_mode" not in text
    assert "Missing:" not in text
    assert browser.post(page(action), {"name": "own", "options": '{"depth": 4}'}).status_code == 302
    action.refresh_from_db()
    assert action.options == {"depth": 4}


def test_a_new_action_uses_the_template_by_default(browser: Client) -> None:
    assert '<option value="scim-user-provisioning" selected>' in browser.get(reverse(ADD)).content.decode()


def test_further_secrets_can_be_kept_or_changed_or_added_or_removed_in_rows(browser: Client, tenant: Tenant) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    new = {"name": "own", "template": "", "entry_point": path, "other_secrets-name-0": "KEY", "other_secrets-value-0": "abc-def"}
    assert browser.post(reverse(ADD), new).status_code == 302
    action = Action.objects.of(tenant.pk).get()
    sent = {"name": "own", "other_secrets-name-0": "KEY", "other_secrets-value-0": ""}

    both = {**sent, "other_secrets-value-0": "new", "other_secrets-removed": "KEY"}
    assert "KEY cannot be entered and removed at the same time." in shown(browser.post(page(action), both))
    assert "Enter a value for “TOKEN”." in shown(browser.post(page(action), {**sent, "other_secrets-name-1": "TOKEN"}))
    added = {**sent, "other_secrets-name-1": "TOKEN", "other_secrets-value-1": "7"}
    assert browser.post(page(action), added).status_code == 302
    assert open_secrets(action) == {"KEY": "abc-def", "TOKEN": "7"}
    assert browser.post(page(action), {**sent, "other_secrets-removed": "KEY"}).status_code == 302
    assert open_secrets(action) == {"TOKEN": "7"}
