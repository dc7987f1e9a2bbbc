"""What the admin shows of this app: every model, no secret, and actions that go through services."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.test import RequestFactory

from authapi.admin import register
from authapi.admin.keys import SigningKeyAdmin
from authapi.models import (
    AdministrativeLine,
    BrandingPicture,
    BrandingTheme,
    ConnectionTest,
    CustomText,
    OrganizationSecondFactors,
    ProviderMetadata,
    RefusedMessage,
    SigningKey,
)
from authapi.tokens.keys import ensure_keys, signing_key
from identity.admin import register as register_identity
from identity.admin.tenant_page import PagesSite
from identity.models import Staff, Tenant

SECRETS = {
    "code", "auth_req_id", "link_digest", "sealed_values", "token", "token_checksum", "device_code", "user_code", "jti",
    "secret_digest", "sealed_secret", "sealed_private_key", "client_secret", "digest", "browser_digest", "sealed_upstream",
    "sealed_successor", "sealed_request", "sealed_state", "sealed_route", "parameters",
}  # fmt: skip


@pytest.fixture
def site() -> PagesSite:
    """A site as it is served, since pages of this app offer rows of the other one."""
    built = PagesSite()
    register_identity(built)
    register(built)
    return built


def pages_of(site: PagesSite) -> list[Any]:
    return [page for model, page in site._registry.items() if model._meta.app_label == "authapi"]


# Staff read the audit log, which says more than its lines for clients. What is known of providers is shown at their connection, and
# a refused message at its line of the sign-in log. Themes and pictures are shown on the page of the looks, and texts on the
# page of texts.
SHOWN_ELSEWHERE = {
    AdministrativeLine,
    BrandingPicture,
    BrandingTheme,
    ProviderMetadata,
    ConnectionTest,
    RefusedMessage,
    CustomText,
    OrganizationSecondFactors,
}


def test_every_model_is_registered_or_shown_elsewhere(site: PagesSite) -> None:
    assert set(apps.get_app_config("authapi").get_models()) - SHOWN_ELSEWHERE == {page.model for page in pages_of(site)}


def test_no_page_shows_or_searches_a_secret(site: PagesSite) -> None:
    request = RequestFactory().get("/")
    request.user = Staff(tenant_id="t1")
    for page in pages_of(site):
        shown: list[Any] = [*page.list_display, *(page.fields or ()), *page.search_fields, *page.list_filter]
        assert not SECRETS & {str(name).lstrip("=^@") for name in shown}, page
        if page.fields is None:
            fieldsets = page.get_fieldsets(request, page.model())
            assert not SECRETS & {name for _, options in fieldsets for name in options["fields"]}, page


def test_pages_of_codes_and_tokens_cannot_be_searched(site: PagesSite) -> None:
    for model, page in site._registry.items():
        if model.__name__ in {"AuthorizationCode", "AccessToken", "RefreshToken", "IDToken", "DeviceGrant", "RevokedToken"}:
            assert not page.search_fields


def test_the_pages_pass_djangos_checks(site: PagesSite) -> None:
    assert [error for page in pages_of(site) for error in page.check()] == []


def test_keys_rotate_and_are_revoked_by_buttons(tenant: Tenant, site: PagesSite) -> None:
    rotate, revoke = SigningKeyAdmin.object_actions
    first = ensure_keys(tenant.pk)
    assert rotate.run(RequestFactory().post("/"), first, {}) == f"Key {signing_key(tenant.pk)[0]} is now current."
    assert signing_key(tenant.pk)[0] != first.kid
    revoke.run(RequestFactory().post("/"), first, {})
    first.refresh_from_db()
    assert first.state == SigningKey.State.REVOKED
    assert not revoke.is_offered(first)
    assert not rotate.is_offered(first)
