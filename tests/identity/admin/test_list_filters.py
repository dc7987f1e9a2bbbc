"""The filters of lists. The choice "No" of a filter also finds rows without a value."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from authapi.models import LoginFailures
from authapi.services.clients import create_client
from identity.models import Connection, Organization, Tenant
from identity.services.connections import create_connection
from identity.services.users import block_user
from tests.factories.admin import Rows
from tests.factories.models.identity import UserFactory


@pytest.fixture
def people(database_connection: Connection) -> None:
    for name in ("never", "blocked"):
        user = UserFactory.create(tenant_id=database_connection.tenant_id, connection=database_connection, email=f"{name}@example.test")
    block_user(tenant_id=user.tenant_id, user_id=user.user_id)


def listed(browser: Client, model: str, query: str) -> str:
    return browser.get(f"{reverse(f'admin:{model}_changelist')}?{query}").content.decode()


@pytest.mark.usefixtures("people")
def test_the_filter_for_users_who_are_not_blocked_finds_users_who_were_never_blocked(browser: Client) -> None:
    yes, no = listed(browser, "identity_user", "blocked__exact=1"), listed(browser, "identity_user", "blocked__exact=0")

    assert ("blocked@example.test" in yes, "never@example.test" in yes) == (True, False)
    assert ("blocked@example.test" in no, "never@example.test" in no) == (False, True)
    assert "Unknown" not in no


def test_the_choice_for_rows_without_a_value_is_called_not_set(browser: Client, tenant: Tenant) -> None:
    Rows(tenant).of(Organization)
    page = listed(browser, "identity_group", "")
    assert re.search(r"__isnull=True[^>]*>\s*Not set", page)
    assert not re.search(r"__isnull=True[^>]*>\s*-", page)


def test_failed_logins_can_be_filtered_by_whether_the_identifier_is_blocked(browser: Client, tenant: Tenant) -> None:
    Rows(tenant).of(LoginFailures)

    page = listed(browser, "authapi_loginfailures", "")

    assert "<summary>Blocked</summary>" in page
    assert "Not empty" not in page


def choices(page: str, title: str) -> list[str]:
    """Return the labels of the choices of the filter with this title."""
    panel = page.partition(f"<summary>{title}</summary>")[2].partition("</ul>")[0]
    return [" ".join(re.sub(r"<[^>]*>", " ", choice).split()) for choice in re.findall(r"<li.*?</li>", panel, re.DOTALL)]


def test_filters_show_their_choices_in_words(browser: Client, tenant: Tenant) -> None:
    create_client(tenant_id=tenant.pk, name="Shop", app_type="regular_web")
    create_connection(tenant_id=tenant.pk, name="company", strategy="samlp", options={})
    clients = listed(browser, "authapi_client", "")
    assert "Web application with a server" in choices(clients, "Kind of application")
    assert "Secret in the Authorization header" in choices(clients, "Authentication")
    assert "SAML" in choices(listed(browser, "identity_connection", ""), "Strategy")
    assert "Self-signed certificate" in choices(listed(browser, "authapi_clientcredential", ""), "Type")
