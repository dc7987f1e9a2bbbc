"""Admin pages of token exchange profiles, and of the grants that allow token exchange."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import reverse

from authapi.models import ClientGrant, TokenExchangeProfile
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from identity.models import Connection, Tenant
from identity.services.connections import create_connection
from identity.services.tenants import create_tenant
from tests.authapi.test_client_pages import form_of
from tests.factories.admin import browser_of, new_staff

ADD = "admin:authapi_tokenexchangeprofile_add"
GOOD: dict[str, Any] = {
    "name": "Old portal",
    "subject_token_type": "urn:acme:portal-token",
    "issuer": "https://portal.example.test",
    "audience": "urn:new-service",
    "jwks_uri": "https://portal.example.test/keys",
    "user_claim": "sub",
}


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def acme(tenant: Tenant) -> Connection:
    return create_connection(
        tenant_id=tenant.pk, name="acme", strategy="oidc", options={"client_id": "x", "issuer": "https://acme.example.test"}
    )


def test_the_form_creates_changes_and_deletes_a_profile(browser: Browser, tenant: Tenant, acme: Connection) -> None:
    made = browser.post(reverse(ADD), {**form_of(browser, reverse(ADD)), **GOOD, "connection": acme.pk})
    assert made.status_code == 302, made.content
    profile = TokenExchangeProfile.objects.of(tenant.pk).get()
    assert (profile.connection_id, profile.is_single_use, profile.creates_users) == (acme.pk, True, False)
    page = reverse("admin:authapi_tokenexchangeprofile_change", args=(profile.pk,))
    assert browser.post(page, form_of(browser, page, creates_users="on", name="Portal")).status_code == 302
    profile.refresh_from_db()
    assert (profile.name, profile.creates_users, profile.jwks_uri) == ("Portal", True, GOOD["jwks_uri"])
    assert b"Portal" in browser.get(reverse("admin:authapi_tokenexchangeprofile_changelist")).content
    browser.post(reverse("admin:authapi_tokenexchangeprofile_delete", args=(profile.pk,)), {"post": "yes"})
    assert not TokenExchangeProfile.objects.of(tenant.pk).exists()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"subject_token_type": "urn:okta:token"}, "This namespace is reserved"),
        ({"jwks_uri": ""}, "Either the address of a key set or the keys themselves"),
        ({"public_keys": '[{"kty": "oct", "k": "x"}]', "jwks_uri": ""}, "Public keys are expected"),
        ({"user_claim": "email", "creates_users": "on"}, "Users can be created only if the claim sub identifies them"),
    ],
)
def test_the_form_explains_errors(browser: Browser, tenant: Tenant, acme: Connection, changes: dict[str, str], text: str) -> None:
    entered = {**form_of(browser, reverse(ADD)), **GOOD, "connection": acme.pk, **changes}
    answer = browser.post(reverse(ADD), entered)
    assert (answer.status_code, text in answer.content.decode()) == (200, True)
    assert not TokenExchangeProfile.objects.of(tenant.pk).exists()


def test_a_connection_of_another_tenant_cannot_be_chosen(browser: Browser, tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    foreign = create_connection(tenant_id=other.pk, name="acme", strategy="oidc", options={"client_id": "x", "issuer": GOOD["issuer"]})
    answer = browser.post(reverse(ADD), {**form_of(browser, reverse(ADD)), **GOOD, "connection": foreign.pk})
    assert answer.status_code == 200
    assert not TokenExchangeProfile.objects.of(tenant.pk).exists()


def test_only_a_client_grant_for_users_can_allow_impersonation(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Orders")
    resource = create_api_resource(tenant_id=tenant.pk, identifier="urn:stock")
    grants = [
        create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, subject_type=kind)
        for kind in ("user", "client")
    ]
    for grant, status in zip(grants, (302, 200), strict=True):
        page = reverse("admin:authapi_clientgrant_change", args=(grant.pk,))
        assert browser.post(page, form_of(browser, page, token_exchange="impersonation")).status_code == status
    assert [ClientGrant.objects.of(tenant.pk).get(pk=grant.pk).settings.get("token_exchange") for grant in grants] == [
        "impersonation",
        None,
    ]
