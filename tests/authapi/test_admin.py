"""The admin pages of this app show every model and no secret, and their actions call the services."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.test import RequestFactory

from authapi.admin import register
from authapi.admin.keys import SigningKeyAdmin
from authapi.admin.sessions import _REASONS_OF_LOGOUTS
from authapi.models import (
    AdministrativeLine,
    BrandingPicture,
    BrandingTheme,
    ConnectionTest,
    CustomText,
    FactorChallenge,
    Initiator,
    LogoutNotice,
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
    """Return the complete site, because pages of this app link to rows of other apps."""
    built = PagesSite()
    register_identity(built)
    register(built)
    return built


def pages_of(site: PagesSite) -> list[Any]:
    return [page for model, page in site._registry.items() if model._meta.app_label == "authapi"]


# Models without their own pages. The audit log shows administrative lines. The page of a connection shows its tests and the metadata of
# its provider. The page of a sign-in line shows the refused message. The branding page shows the theme and pictures. The page of texts
# shows texts.
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


def test_every_model_is_registered_or_shown_on_another_page(site: PagesSite) -> None:
    assert set(apps.get_app_config("authapi").get_models()) - SHOWN_ELSEWHERE == {page.model for page in pages_of(site)}


def test_no_page_shows_secrets_or_searches_columns_with_secrets(site: PagesSite) -> None:
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


def test_the_pages_pass_the_system_checks_of_django(site: PagesSite) -> None:
    assert [error for page in pages_of(site) for error in page.check()] == []


def test_buttons_rotate_and_revoke_keys(tenant: Tenant, site: PagesSite) -> None:
    rotate, revoke = SigningKeyAdmin.object_actions
    first = ensure_keys(tenant.pk)
    assert rotate.run(RequestFactory().post("/"), first, {}) == f"Key {signing_key(tenant.pk)[0]} is now current."
    assert signing_key(tenant.pk)[0] != first.kid
    revoke.run(RequestFactory().post("/"), first, {})
    first.refresh_from_db()
    assert first.state == SigningKey.State.REVOKED
    assert not revoke.is_offered(first)
    assert not rotate.is_offered(first)


def test_reasons_of_notices_and_purposes_of_challenges_are_shown_in_words(site: PagesSite) -> None:
    notice = LogoutNotice(initiator="account-deactivated")
    challenge = FactorChallenge(purpose="enroll")

    assert site.get_model_admin(LogoutNotice).reason(notice) == "User blocked"  # type: ignore[attr-defined]
    assert site.get_model_admin(FactorChallenge).purpose_in_words(challenge) == "Confirmation of a new second factor"  # type: ignore[attr-defined]
    named = {_REASONS_OF_LOGOUTS[each] for each in Initiator}
    assert len(named) == len(Initiator)
