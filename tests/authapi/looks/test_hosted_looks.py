"""The branding of the hosted pages: style sheet, content security policy, pictures, and organizations."""

from __future__ import annotations

import re

import pytest

from authapi.looks.current import remembered_organizations, remembered_themes
from authapi.looks.theme import default_theme, with_value
from authapi.models import BrandingPicture
from authapi.pages.branding import brand_of, page_policy
from authapi.services.branding import change_branding, create_theme, delete_theme, reset_looks, theme_of, upload_picture
from authapi.tenant_settings import remembered_settings
from identity.models import Organization, Tenant
from identity.services.memberships import add_connection
from identity.services.organizations import create_organization
from tests.authapi.browser import Browser
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.looks.test_pictures import encoded
from tests.factories.admin import new_tenant
from tests.factories.models.identity import OrganizationFactory

RESET = "/u/reset-password/request"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    for memory in (remembered_settings, remembered_themes, remembered_organizations):
        memory.clear()


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return Browser(tenant)


def sheet_of(browser: Browser, path: str = RESET) -> str:
    page = browser.get(path)
    address = re.search(r'href="(/u/brand\.css[^"]*)"', page.text)
    assert address, page.text
    return browser.send("GET", address.group(1)).text


def test_the_pages_show_a_theme_as_soon_as_it_is_set_and_until_it_is_deleted(browser: Browser, tenant: Tenant) -> None:
    theme = with_value(default_theme(), ("borders", "buttons_style"), "pill")
    row = create_theme(tenant_id=tenant.pk, values=theme)
    assert "--button-radius: 999px;" in sheet_of(browser)
    delete_theme(tenant_id=tenant.pk, theme_id=row.pk)
    assert "brand.css" not in browser.get(RESET).text


def test_the_content_security_policy_names_only_the_sources_of_pictures_and_of_the_font(tenant: Tenant) -> None:
    theme = with_value(default_theme(), ("page_background", "background_image_url"), "https://img.example.test/sea.jpg")
    theme = with_value(theme, ("fonts", "font_url"), "https://font.example.test:8443/f.woff2")
    create_theme(tenant_id=tenant.pk, values=theme)
    change_branding(tenant_id=tenant.pk, changes={"logo_url": "https://cdn.example.test/logo.png"})
    policy = page_policy(brand_of(tenant.pk))
    assert policy == (
        "default-src 'none'; style-src 'self'; img-src 'self' https://cdn.example.test https://img.example.test; "
        "font-src https://font.example.test:8443; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def test_a_style_sheet_with_an_outdated_version_is_not_cached(browser: Browser, tenant: Tenant) -> None:
    create_theme(tenant_id=tenant.pk, values=default_theme())
    assert browser.send("GET", "/u/brand.css?v=0000000000000000").headers["cache-control"] == "no-store"
    assert browser.send("GET", "/u/brand.css?organization=%00&v=").status == 200


def test_a_picture_is_served_with_its_own_content_type_and_can_be_cached(browser: Browser, tenant: Tenant) -> None:
    stored = upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded())
    page = browser.get(RESET)
    assert f'src="{stored.path}"' in page.text
    answer = browser.send("GET", stored.path)
    assert answer.body == bytes(BrandingPicture.objects.of(tenant.pk).get().data)
    assert {
        name: answer.headers[name] for name in ("content-type", "x-content-type-options", "cache-control", "content-security-policy")
    } == {
        "content-type": "image/png",
        "x-content-type-options": "nosniff",
        "cache-control": "public, max-age=31536000, immutable",
        "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }


def test_a_picture_is_not_found_at_another_tenant_or_under_another_name(browser: Browser, tenant: Tenant) -> None:
    stored = upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded())
    assert Browser(new_tenant()).send("GET", stored.path).status == 404
    name = stored.path.rpartition("/")[2]
    for other in (name.replace("png", "jpg"), name.replace("png", "svg"), name[1:], "%00.png", "x.png", f"{name}%00"):
        assert browser.send("GET", f"/u/pictures/{other}").status in {400, 404}, other


def test_a_replaced_or_removed_picture_is_no_longer_served(browser: Browser, tenant: Tenant) -> None:
    first = upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded(size=(40, 20)))
    second = upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded(size=(50, 20)))
    assert [browser.send("GET", stored.path).status for stored in (first, second)] == [404, 200]
    change_branding(tenant_id=tenant.pk, changes={"logo_url": None})
    assert browser.send("GET", second.path).status == 404
    assert "<img" not in browser.get(RESET).text


def test_a_reset_removes_pictures_and_colors_and_the_theme(browser: Browser, tenant: Tenant) -> None:
    for kind in ("logo", "favicon", "background"):
        upload_picture(tenant_id=tenant.pk, kind=kind, sent=encoded())
    change_branding(tenant_id=tenant.pk, changes={"primary_color": "#112233", "font_stack": "serif"})
    reset_looks(tenant_id=tenant.pk)
    assert theme_of(tenant.pk) is None
    assert not BrandingPicture.objects.of(tenant.pk).exists()
    assert "brand.css" not in browser.get(RESET).text


def test_a_reset_of_one_tenant_does_not_change_another_tenant(tenant: Tenant) -> None:
    other = new_tenant()
    stored = upload_picture(tenant_id=other.pk, kind="background", sent=encoded())
    reset_looks(tenant_id=tenant.pk)
    assert Browser(other).send("GET", stored.path).status == 200


def test_the_style_sheet_of_an_organization_has_only_its_own_colors(browser: Browser, tenant: Tenant) -> None:
    branding = {"logo_url": "https://acme.example.test/l.png", "colors": {"primary": "#fc0", "page_background": "#012345"}}
    own: Organization = OrganizationFactory.create(tenant_id=tenant.pk, branding=branding)
    brand = brand_of(tenant.pk, own.pk)
    assert brand.logo == branding["logo_url"]
    assert "--brand: #ffcc00;" in browser.send("GET", brand.stylesheet).text
    assert "ffcc00" not in Browser(new_tenant()).send("GET", brand.stylesheet).text
    assert brand_of(new_tenant().pk, own.pk).logo == ""


def test_an_organization_logo_that_could_change_the_content_security_policy_is_not_shown(tenant: Tenant) -> None:
    branding = {"logo_url": "https://a.test;script-src *"}
    own: Organization = OrganizationFactory.create(tenant_id=tenant.pk, branding=branding)
    assert "script-src" not in page_policy(brand_of(tenant.pk, own.pk))
    assert brand_of(tenant.pk, own.pk).logo == ""


def test_only_a_login_for_an_organization_shows_the_branding_of_the_organization(login: Login) -> None:
    branding = {"logo_url": "https://acme.example.test/l.png", "colors": {"primary": "#fc0", "page_background": "#012345"}}
    change_branding(tenant_id=login.tenant.pk, changes={"primary_color": "#0b6e4f"})
    acme = create_organization(tenant_id=login.tenant.pk, name="acme", branding=branding)
    add_connection(tenant_id=login.tenant.pk, organization_id=acme.pk, connection_id=login.connection.pk)
    set_client(login, settings={"organization_usage": "allow"})
    page = login.browser.follow(login.ask(organization=acme.pk))
    assert f'src="{branding["logo_url"]}"' in page.text
    assert "img-src 'self' https://acme.example.test;" in page.headers["content-security-policy"]
    address = re.search(r'href="(/u/brand[.]css[^"]*)"', page.text)
    assert address
    assert "--brand: #ffcc00;" in login.browser.send("GET", address.group(1)).text
    assert "acme" not in login.browser.follow(login.ask()).text
