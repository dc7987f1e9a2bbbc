"""The logo and the colors of the hosted pages over the management interface."""

from __future__ import annotations

import pytest

from authapi.tenant_settings import sign_in_settings
from identity.models import AuditEntry, Tenant
from tests.management import Management

LOOK = {"colors": {"primary": "#112233", "page_background": "#ffffff"}, "logo_url": "https://example.test/logo.png"}


@pytest.mark.parametrize(
    "body",
    [
        {"colors": {"primary": "red"}},
        {"colors": {"page_background": {"type": "linear-gradient", "start": "#ffffff"}}},
        {"colors": "#112233"},
        {"logo_url": "http://example.test/logo.png"},
        {"logo_url": 'https://example.test/"; script-src *'},
        {"favicon_url": "javascript:alert(1)"},
        {"font": {"url": "https://example.test/font.css"}},
        {"font": {"url": "http://example.test/font.woff2"}},
        {"logo_url": "https://user@example.test/logo.png"},
        {"logo_url": "/u/pictures/" + "a" * 64 + ".png"},
        {"templates": []},
    ],
)
def test_invalid_branding_is_refused_and_changes_nothing(api: Management, body: object) -> None:
    answer = api.patch("branding", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("branding").json == {}


def test_the_hosted_pages_show_the_stored_branding(api: Management, tenant: Tenant) -> None:
    assert api.get("branding").json == {}
    assert (api.patch("branding", LOOK).json, api.get("branding").json) == (LOOK, LOOK)
    settings = sign_in_settings(tenant.pk)
    assert (settings.primary_color, settings.page_background, settings.logo_url) == ("#112233", "#ffffff", LOOK["logo_url"])
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.tenantsettings").exists()


def test_colors_are_merged_and_null_restores_the_default_branding(api: Management) -> None:
    api.patch("branding", LOOK)
    assert api.patch("branding", {"colors": {"primary": "#445566"}}).json["colors"] == {"primary": "#445566", "page_background": "#ffffff"}
    assert api.patch("branding", {"colors": {"primary": ""}, "logo_url": None}).json == {"colors": {"page_background": "#ffffff"}}
    assert api.patch("branding", {"colors": None}).json == {}
    assert api.patch("branding", {}).json == {}


def test_the_branding_requires_its_scopes(tenant: Tenant) -> None:
    assert Management(tenant, scope="read:branding").get("branding").status == 200
    assert Management(tenant, scope="read:branding").patch("branding", LOOK).json["errorCode"] == "insufficient_scope"
