"""The branding page of a tenant in the admin: saving, refusals, the preview, and permissions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser
from django.urls import reverse

from authapi.looks.theme import default_theme, value_at, with_value
from authapi.models import BrandingPicture
from authapi.services.branding import branding_of, create_theme, theme_of, upload_picture
from identity.models import AuditEntry, Tenant
from identity.staff_roles import AUDITOR, PROVISIONING_OPERATOR
from tests.authapi.looks.test_pictures import SVG, encoded
from tests.factories.admin import browser_of, new_staff, new_tenant

PAGE = "/admin/authapi/branding/"
PREVIEW, STYLE, RESET = f"{PAGE}preview/", f"{PAGE}preview.css", f"{PAGE}reset/"


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


def form_of(browser: Browser, **changes: Any) -> dict[str, Any]:
    form = browser.get(PAGE).context["form"]
    sent = {name: form[name].value() for name in form.fields} | {"save": "Save"} | changes
    return {name: value for name, value in sent.items() if value not in (None, False)}


def previewed(browser: Browser, **changes: Any) -> Any:
    return browser.post(PREVIEW, form_of(browser, **changes), headers={"accept": "application/json"}).json()


def test_saving_the_unchanged_form_of_a_new_tenant_keeps_the_branding_of_its_pages(browser: Browser, tenant: Tenant) -> None:
    assert browser.post(PAGE, form_of(browser)).status_code == 302
    row = theme_of(tenant.pk)
    assert row is not None
    assert row.values == default_theme()
    assert branding_of(tenant.pk)["primary_color"] == value_at(row.values, ("colors", "primary_button"))


def test_a_saved_form_changes_the_pages_and_is_logged(browser: Browser, tenant: Tenant) -> None:
    sent = form_of(
        browser,
        colors__primary_button="#0b6e4f",
        colors__base_focus_color="#0b6e4f",
        page_background__page_layout="left",
        font_stack="serif",
        logo_url="https://cdn.example.test/logo.png",
        borders__show_widget_shadow=False,
    )
    assert browser.post(PAGE, sent).status_code == 302
    visitor = Browser(headers={"host": f"{tenant.pk}.example.test"})
    page = visitor.get("/u/reset-password/request").content.decode()
    css = visitor.get(re.search(r'href="(/u/brand\.css[^"]*)"', page)[1].replace("&amp;", "&")).content.decode()  # type: ignore[index]
    assert "https://cdn.example.test/logo.png" in page
    for rule in ("--brand: #0b6e4f;", "--focus: #0b6e4f;", "--card-shadow: none;", "Palatino"):
        assert rule in css
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, act="Save branding")
    assert set(noted.values_list("object_type", flat=True)) == {"authapi.brandingtheme", "authapi.tenantsettings"}
    # The default applies again when an optional color is cleared.
    browser.post(PAGE, form_of(browser, colors__base_focus_color=""))
    row = theme_of(tenant.pk)
    assert row is not None
    assert "base_focus_color" not in row.values["colors"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colors__primary_button", "red;} body {display: none"),
        ("colors__primary_button", ""),
        ("colors__body_text", "#f0f0f0"),
        ("borders__widget_corner_radius", "51"),
        ("borders__buttons_style", "x"),
        ("font_url", "https://fonts.example.test/css2"),
        ("font_stack", 'x"; }'),
        ("logo_url", 'https://a.test/"; script-src *'),
        ("favicon_url", "javascript:alert(1)"),
        ("page_background__background_image_url", "https://a.test/x)"),
        ("logo_url", "/u/pictures/" + "a" * 64 + ".png"),
    ],
)
def test_invalid_branding_stays_in_the_form_and_is_not_saved(browser: Browser, tenant: Tenant, name: str, value: str) -> None:
    answer = browser.post(PAGE, form_of(browser, **{name: value}))
    assert answer.status_code == 200
    assert name in answer.context["form"].errors
    assert theme_of(tenant.pk) is None
    assert not any(branding_of(tenant.pk).values())


def test_a_message_shows_a_corrected_color(browser: Browser) -> None:
    page = browser.post(PAGE, form_of(browser, colors__success="#13a688"), follow=True).content.decode()
    assert page.count("#13a688 on #ffffff has a contrast of 3.0:1; 4.5:1 is needed. The pages show #") == 2


def test_a_theme_from_the_interface_keeps_the_members_that_the_form_does_not_show(browser: Browser, tenant: Tenant) -> None:
    theme = with_value(default_theme(), ("colors", "captcha_widget_theme"), "dark")
    create_theme(
        tenant_id=tenant.pk, values=with_value(theme, ("widget", "logo_url"), "https://cdn.example.test/t.png"), display_name="Ours"
    )
    browser.post(PAGE, form_of(browser))
    row = theme_of(tenant.pk)
    assert row is not None
    assert row.display_name == "Ours"
    assert row.values["colors"]["captcha_widget_theme"] == "dark"
    assert (row.values["widget"]["logo_url"], branding_of(tenant.pk)["logo_url"]) == ("", "https://cdn.example.test/t.png")


# --- Pictures -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logo", "favicon", "background"])
def test_an_uploaded_picture_is_shown_immediately_and_other_input_is_kept(browser: Browser, tenant: Tenant, kind: str) -> None:
    sent = form_of(browser, upload=kind, colors__primary_button="#0b6e4f") | {f"file_{kind}": SimpleUploadedFile("x.html", encoded())}
    del sent["save"]
    answer = browser.post(PAGE, sent)
    picture = BrandingPicture.objects.of(tenant.pk).get()
    shown = re.findall(r'src="([^"]*/pictures/[^"]*)"', answer.content.decode())
    assert shown == [f"{PAGE}pictures/{picture.digest}.{picture.ending}"]
    assert browser.get(shown[0]).headers["Content-Type"] == picture.media_type
    assert answer.context["form"]["colors__primary_button"].value() == "#0b6e4f"
    assert theme_of(tenant.pk) is None or kind == "background"
    assert previewed(browser, **{f"remove_{kind}": "on"})["problems"] == {}
    assert BrandingPicture.objects.of(tenant.pk).exists()
    # Saving the form keeps the picture. The button for removal deletes the picture.
    browser.post(PAGE, form_of(browser))
    assert BrandingPicture.objects.of(tenant.pk).exists()
    browser.post(PAGE, form_of(browser, **{f"remove_{kind}": "on"}))
    assert not BrandingPicture.objects.of(tenant.pk).exists()


@pytest.mark.parametrize("content", [SVG, b"<html><script>alert(1)</script></html>", b"", None])
def test_an_invalid_picture_file_is_refused_beside_its_field(browser: Browser, tenant: Tenant, content: bytes | None) -> None:
    sent = form_of(browser, upload="logo")
    if content is not None:
        sent["file_logo"] = SimpleUploadedFile("logo.png", content, content_type="image/png")
    answer = browser.post(PAGE, sent)
    assert answer.status_code == 200
    assert 'aria-invalid="true" aria-describedby="file_logo_error"' in answer.content.decode()
    assert not BrandingPicture.objects.of(tenant.pk).exists()


def test_an_upload_for_an_unknown_kind_of_picture_is_refused(browser: Browser, tenant: Tenant) -> None:
    assert browser.post(PAGE, form_of(browser, upload="../x")).status_code == 404


def test_a_url_replaces_an_uploaded_logo(browser: Browser, tenant: Tenant) -> None:
    upload_picture(tenant_id=tenant.pk, kind="logo", sent=encoded())
    browser.post(PAGE, form_of(browser, logo_url="https://cdn.example.test/logo.png"))
    assert branding_of(tenant.pk)["logo_url"] == "https://cdn.example.test/logo.png"
    assert not BrandingPicture.objects.of(tenant.pk).exists()


def test_a_host_does_not_serve_the_picture_of_another_tenant(browser: Browser) -> None:
    stored = upload_picture(tenant_id=new_tenant().pk, kind="logo", sent=encoded())
    assert browser.get(f"{PAGE}pictures/{stored.path.rpartition('/')[2]}").status_code == 404


# --- Preview --------------------------------------------------------------------------------------------------------------------------


def test_a_preview_shows_unsaved_values_and_saves_nothing(browser: Browser, tenant: Tenant) -> None:
    found = previewed(browser, colors__primary_button="#0b6e4f", colors__success="#13a688", widget__social_buttons_layout="top")
    assert found["problems"] == {}
    assert list(found["notices"]) == ["colors__success"]
    page = browser.get(found["address"]).content.decode()
    css = browser.get(re.search(r'href="([^"]*preview\.css[^"]*)"', page)[1]).content.decode()  # type: ignore[index]
    assert "--brand: #0b6e4f;" in css
    assert page.index("Continue with another account") < page.index('type="password"')
    assert theme_of(tenant.pk) is None


def test_a_preview_without_script_opens_the_same_page(browser: Browser) -> None:
    answer = browser.post(PREVIEW, form_of(browser))
    assert answer.status_code == 302
    assert browser.get(answer.headers["Location"]).status_code == 200


@pytest.mark.parametrize(("mode", "kept", "dropped"), [("light", "light", "dark"), ("dark", "dark", "light")])
def test_a_preview_applies_only_the_style_sheets_of_its_color_mode(browser: Browser, mode: str, kept: str, dropped: str) -> None:
    found = previewed(browser, **{"preview-mode": mode})
    style = browser.get(f"{STYLE}?{found['address'].partition('?')[2]}").content.decode()
    assert "prefers-color-scheme" not in style
    assert style.endswith(f":root {{ color-scheme: {mode}; }}")
    block = "@media (min-width: 0) { :root { --card: #ffffff;" if mode == "light" else "@media (max-width: 0) { :root { --card: #ffffff;"
    assert block in style


def test_a_preview_has_no_script_and_only_the_admin_can_frame_it(browser: Browser) -> None:
    answer = browser.get(previewed(browser)["address"])
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert policy.endswith("frame-ancestors 'self'; sandbox allow-same-origin")
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "<script" not in answer.content.decode()
    assert 'sandbox="allow-same-origin"' in browser.get(PAGE).content.decode()


def test_an_invalid_preview_shows_which_fields_are_invalid(browser: Browser) -> None:
    bad = {"colors__primary_button": "red;}", "page_background__background_image_url": 'https://a.test/x"); } body { display: none'}
    found = previewed(browser, **bad)
    assert found["address"] == ""
    assert set(found["problems"]) == set(bad)
    framed = browser.post(PREVIEW, form_of(browser, **bad))
    assert "Main button" in framed.content.decode()
    assert "script-src" not in framed.headers["Content-Security-Policy"]


def test_a_preview_url_that_this_admin_did_not_create_shows_the_stored_branding(browser: Browser, tenant: Tenant) -> None:
    stranger = browser_of(new_staff(new_tenant()))
    foreign = previewed(stranger, colors__primary_button="#0b6e4f")["address"].partition("=")[2]
    for text in (foreign, foreign[:-1], "x", ""):
        assert browser.get(STYLE, {"looks": text}).status_code == 404
        page = browser.get(PREVIEW, {"looks": text}).content.decode()
        css = browser.get(re.search(r'href="([^"]*preview\.css[^"]*)"', page)[1]).content.decode()  # type: ignore[index]
        assert "#0b6e4f" not in css


def test_a_preview_requires_the_token_of_the_form(tenant: Tenant) -> None:
    strict = browser_of(new_staff(tenant))
    strict.handler.enforce_csrf_checks = True
    assert strict.post(PREVIEW, {}).status_code == 403
    assert strict.post(PAGE, {"save": "Save"}).status_code == 403


# --- Reset, roles, tenants --------------------------------------------------------------------------------------------------------------


def test_a_reset_asks_for_confirmation(browser: Browser, tenant: Tenant) -> None:
    browser.post(PAGE, form_of(browser))
    assert "cannot be undone" in browser.get(RESET).content.decode()
    assert theme_of(tenant.pk) is not None
    assert browser.post(RESET).status_code == 302
    assert theme_of(tenant.pk) is None
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, act="Reset branding").exists()


def test_an_auditor_can_view_and_preview_the_branding_but_not_change_it(tenant: Tenant) -> None:
    auditor = browser_of(new_staff(tenant, AUDITOR))
    page = auditor.get(PAGE).content.decode()
    assert 'name="save"' not in page
    assert "Upload" not in page.replace("to upload", "").replace("Upload a PNG", "").replace("Uploaded pictures", "")
    assert previewed(auditor)["address"]
    for address, sent in ((PAGE, form_of(auditor)), (PAGE, {"upload": "logo"}), (RESET, {})):
        assert auditor.post(address, sent).status_code == 403
    assert auditor.get(RESET).status_code == 403
    assert theme_of(tenant.pk) is None


def test_a_role_without_the_permission_cannot_open_the_page(tenant: Tenant) -> None:
    operator = browser_of(new_staff(tenant, PROVISIONING_OPERATOR))
    for address in (PAGE, PREVIEW, STYLE, RESET, f"{PAGE}pictures/x.png"):
        assert operator.get(address).status_code == 403
        assert operator.post(address).status_code == 403
    operator.logout()
    assert operator.get(PAGE).headers["Location"].startswith(reverse("admin:login"))


def test_the_page_shows_and_saves_only_the_tenant_of_the_staff_account(browser: Browser, tenant: Tenant) -> None:
    other = new_tenant()
    create_theme(tenant_id=other.pk, values=with_value(default_theme(), ("colors", "primary_button"), "#0b6e4f"))
    assert "#0b6e4f" not in browser.get(PAGE).content.decode()
    browser.post(PAGE, form_of(browser) | {"tenant": other.pk})
    row = theme_of(other.pk)
    assert row is not None
    assert row.values["colors"]["primary_button"] == "#0b6e4f"
