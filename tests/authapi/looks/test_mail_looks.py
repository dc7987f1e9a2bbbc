"""The branding of a tenant in its mails: logo, readable colors, and the branding of the organization that a mail is about."""

from __future__ import annotations

import re
from typing import Any

import pytest

from authapi.looks.colors import TEXT_CONTRAST, contrast
from authapi.looks.current import remembered_organizations, remembered_themes
from authapi.looks.mails import mail_looks
from authapi.looks.theme import default_theme, with_value
from authapi.models import TenantSettings
from authapi.services.branding import change_branding, create_theme, upload_picture
from authapi.tenant_settings import remembered_settings
from identity.messages.catalogue import KINDS
from identity.messages.composing import compose
from identity.messages.facts import organization_facts
from identity.models import CustomDomain, Tenant
from tests.authapi.looks.test_pictures import encoded
from tests.factories.admin import new_tenant
from tests.factories.models.identity import OrganizationFactory

LOGO, OTHER_LOGO = "https://cdn.example.test/logo.png", "https://cdn.example.test/acme.png"
COLORS = {"primary": "#ffee00", "page_background": "#ffffff"}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    for memory in (remembered_settings, remembered_themes, remembered_organizations):
        memory.clear()


def mailed(tenant: Tenant, **context: Any) -> str:
    """Return the HTML of a mail with a link."""
    url = f"https://{tenant.pk}.example.test/u/verify?ticket=t"
    facts = {"url": url, "user": {"email": "ada@example.test"}, "until": "2026-11-23 10:00", **context}
    return compose(KINDS["verify_email"], tenant_id=tenant.pk, context=facts).html


def button(html: str) -> tuple[str, str]:
    """Return the colors of the button and of its label."""
    found = re.search(r"background-color:(#[0-9a-f]{6});\s*color:(#[0-9a-f]{6});\s*border:1px solid", html)
    assert found, html
    return found.group(1), found.group(2)


def test_a_mail_shows_the_logo_and_the_color_of_only_its_own_tenant(tenant: Tenant) -> None:
    other = new_tenant()
    change_branding(tenant_id=tenant.pk, changes={"logo_url": LOGO, "primary_color": "#0b6e4f"})
    own, foreign = mailed(tenant), mailed(other)
    assert f'<img src="{LOGO}"' in own
    assert button(own) == ("#0b6e4f", "#ffffff")
    assert "<img" not in foreign
    assert button(foreign) == ("#1f4fd8", "#ffffff")


def test_an_uploaded_logo_has_an_absolute_url_in_a_mail(tenant: Tenant) -> None:
    path = upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded()).path
    host = CustomDomain.objects.of(tenant.pk).get(is_canonical=True).host
    found = re.search(r'<img src="([^"]+)"', mailed(tenant))
    assert found
    assert found.group(1).endswith(f"://{host}{path}")
    CustomDomain.objects.of(tenant.pk).delete()
    assert "<img" not in mailed(tenant)


@pytest.mark.parametrize("color", ["#ffffff", "#ffff00", "#777777", "#000000", "#0b6e4f", "#808080"])
def test_the_label_of_the_button_is_readable_on_every_color(tenant: Tenant, color: str) -> None:
    change_branding(tenant_id=tenant.pk, changes={"primary_color": color})
    assert button(mailed(tenant))[0] == color
    assert contrast(*button(mailed(tenant))) >= TEXT_CONTRAST


def test_a_mail_uses_the_button_color_of_the_theme_instead_of_the_primary_color(tenant: Tenant) -> None:
    change_branding(tenant_id=tenant.pk, changes={"logo_url": LOGO, "primary_color": "#0b6e4f"})
    theme = with_value(default_theme(), ("colors", "primary_button"), "#ff8800")
    # The contrast between this label and its button is 3.6:1. That is less than the 4.5:1 of readable text, so pages and mails correct the
    # color of the label.
    theme = with_value(theme, ("colors", "primary_button_label"), "#7a1f00")
    create_theme(tenant_id=tenant.pk, values=with_value(theme, ("widget", "logo_position"), "none"))
    remembered_themes.clear()
    html = mailed(tenant)
    color, label = button(html)
    assert (color, label == "#7a1f00") == ("#ff8800", False)
    assert contrast(color, label) >= TEXT_CONTRAST
    assert "<img" not in html


def test_a_mail_about_an_organization_has_the_branding_of_the_organization(tenant: Tenant) -> None:
    change_branding(tenant_id=tenant.pk, changes={"logo_url": LOGO, "primary_color": "#0b6e4f"})
    acme = OrganizationFactory.create(tenant_id=tenant.pk, branding={"logo_url": OTHER_LOGO, "colors": COLORS})
    html = mailed(tenant, organization=organization_facts(acme))
    assert OTHER_LOGO in html
    assert LOGO not in html
    assert button(html) == ("#ffee00", "#000000")


def test_the_branding_of_an_organization_of_another_tenant_is_not_used(tenant: Tenant) -> None:
    acme = OrganizationFactory.create(tenant_id=new_tenant().pk, branding={"logo_url": OTHER_LOGO, "colors": COLORS})
    html = mailed(tenant, organization=organization_facts(acme))
    assert OTHER_LOGO not in html
    assert button(html)[0] == "#1f4fd8"


@pytest.mark.parametrize("color", ["red;}", "javascript:x", "#12345", ""])
def test_an_invalid_color_is_ignored(tenant: Tenant, color: str) -> None:
    # No interface accepts such values. Another version could have stored them.
    odd = {"logo_url": "javascript:alert(1)", "primary_color": color}
    TenantSettings(tenant_id=tenant.pk, values={"branding": odd}).save()
    looks = mail_looks(tenant.pk)
    assert (looks["logo_url"], looks["primary_color"]) == ("", "")
    html = mailed(tenant)
    assert "javascript" not in html
    assert button(html) == ("#1f4fd8", "#ffffff")
