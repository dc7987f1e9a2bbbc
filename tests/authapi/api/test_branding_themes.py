"""The theme of a tenant over the management interface."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.looks.theme import default_theme, members, with_value
from authapi.models import AdministrativeLine, BrandingPicture, BrandingTheme
from authapi.services.branding import upload_picture
from identity.models import AuditEntry, Tenant
from tests.authapi.looks.test_pictures import encoded
from tests.factories.admin import new_tenant
from tests.factories.models.authapi import BrandingThemeFactory
from tests.management import Management

THEMES = "branding/themes"
DEFAULT = f"{THEMES}/default"


def changed(path: str, value: Any) -> dict[str, Any]:
    return with_value(default_theme(), tuple(path.split(".")), value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("colors.primary_button", "red"),
        ("colors.primary_button", "#fff;} body{display:none"),
        ("colors.primary_button", None),
        ("colors.header", "#fff\n"),
        ("colors.captcha_widget_theme", "bright"),
        ("borders.buttons_style", "round"),
        ("borders.button_border_radius", 11),
        ("borders.button_border_radius", "8"),
        ("borders.show_widget_shadow", 1),
        ("borders.unknown", 1),
        ("fonts.font_url", "https://fonts.example.test/css2?family=Roboto"),
        ("fonts.font_url", "http://fonts.example.test/f.woff2"),
        ("fonts.title.size", 74),
        ("fonts.title", {"bold": True}),
        ("fonts.body_text.size", 10),
        ("page_background.background_image_url", 'https://a.test/x"); } body { display: none'),
        ("page_background.background_image_url", "/u/pictures/" + "a" * 64 + ".png"),
        ("page_background.page_layout", "middle"),
        ("widget.logo_url", "javascript:alert(1)"),
        ("widget.logo_height", 101),
        ("widget.logo_height", True),
        ("displayName", "<script>"),
        ("anything", {}),
    ],
)
def test_an_invalid_theme_is_refused_with_the_name_of_the_invalid_member(api: Management, path: str, value: Any) -> None:
    answer = api.post(THEMES, changed(path, value))
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert answer.json["message"].endswith(tuple(path.split(".")[-1:]) if "title" not in path or path.endswith("size") else ("size",))
    assert api.get(DEFAULT).status == 404


@pytest.mark.parametrize("missing", ["borders", "colors.header", "fonts.title", "fonts.title.bold", "page_background", "widget.logo_url"])
def test_a_theme_without_a_required_member_is_refused(api: Management, missing: str) -> None:
    theme: Any = default_theme()
    *way, last = missing.split(".")
    inner = theme
    for name in way:
        inner = inner[name]
    del inner[last]
    answer = api.post(THEMES, theme)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_unreadable_text_is_refused_with_a_readable_color_as_a_suggestion(api: Management) -> None:
    answer = api.post(THEMES, changed("colors.body_text", "#f0f0f0"))
    assert answer.status == 400
    problem = "#f0f0f0 on #ffffff has a contrast of 1.1:1 and cannot be read."
    assert f"{problem} At least 4.5:1 is needed, for example #" in answer.json["message"]
    assert answer.json["message"].endswith("colors.body_text")


def test_faint_text_is_accepted_and_stored_as_sent(api: Management) -> None:
    theme = changed("colors.success", "#13a688")
    assert api.post(THEMES, theme).json["colors"]["success"] == "#13a688"
    assert api.get(DEFAULT).json["colors"] == theme["colors"]


def test_a_theme_is_read_back_as_written_until_it_is_deleted(api: Management, tenant: Tenant) -> None:
    assert api.get(DEFAULT).json["errorCode"] == "inexistent_theme"
    theme = {**default_theme(), "displayName": "Ours"}
    theme["colors"] |= {"base_focus_color": "#635dff", "captcha_widget_theme": "dark"}
    made = api.post(THEMES, theme)
    key = made.json["themeId"]
    assert made.status == 201
    assert made.json == {**theme, "themeId": key}
    assert api.get(DEFAULT).json == api.get(f"{THEMES}/{key}").json == made.json
    wide = {"page_background": {**theme["page_background"], "page_layout": "left"}}
    assert api.patch(f"{THEMES}/{key}", wide).json == {**made.json, **wide}
    assert api.patch(f"{THEMES}/{key}", {"displayName": ""}).json["displayName"] == ""
    assert api.patch(f"{THEMES}/{key}", {}).json["page_background"]["page_layout"] == "left"
    assert api.delete(f"{THEMES}/{key}").status == 204
    assert [api.get(path).status for path in (DEFAULT, f"{THEMES}/{key}")] == [404, 404]
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.brandingtheme").order_by("id")
    assert [entry.kind for entry in noted] == ["add", "change", "change", "delete"]
    assert (
        AdministrativeLine.objects.of(tenant.pk).filter(description__in=["Create a branding theme", "Delete a branding theme"]).count() == 2
    )


def test_a_tenant_has_one_theme(api: Management) -> None:
    assert api.post(THEMES, default_theme()).status == 201
    again = api.post(THEMES, default_theme())
    assert (again.status, again.json["errorCode"]) == (409, "theme_already_exists")


def test_a_theme_with_a_member_named_identifiers_is_refused(api: Management) -> None:
    identifiers = {"login_display": "unified", "otp_autocomplete": True, "phone_display": {"formatting": "regional", "masking": "show_all"}}
    answer = api.post(THEMES, {**default_theme(), "identifiers": identifiers})
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")


@pytest.mark.parametrize(
    ("method", "scope"),
    [("GET", "read:branding"), ("POST", "update:branding"), ("PATCH", "update:branding"), ("DELETE", "delete:branding")],
)
def test_each_operation_requires_its_scope(tenant: Tenant, method: str, scope: str) -> None:
    key = BrandingThemeFactory.create(tenant_id=tenant.pk).pk
    others = {"read:branding", "update:branding", "delete:branding"} - {scope}
    path = THEMES if method == "POST" else f"{THEMES}/{key}"
    body = {"GET": None, "DELETE": None}.get(method, default_theme())
    refused = Management(tenant, scope=" ".join(others)).call(method, path, body=body)
    assert (refused.status, refused.json["errorCode"]) == (403, "insufficient_scope")
    assert Management(tenant, scope=scope).call(method, path, body=body).status in {200, 204, 409}


def test_the_theme_of_another_tenant_is_not_found(api: Management) -> None:
    foreign = BrandingThemeFactory.create(tenant_id=new_tenant().pk)
    path = f"{THEMES}/{foreign.pk}"
    answers = [api.get(path), api.patch(path, default_theme()), api.delete(path), api.get(DEFAULT)]
    assert [answer.status for answer in answers] == [404] * 4
    assert BrandingTheme.objects.of(foreign.tenant_id).get().values == default_theme()


def test_an_uploaded_picture_has_an_absolute_url_that_can_be_sent_back(api: Management, tenant: Tenant) -> None:
    stored = upload_picture(tenant_id=tenant.pk, kind="background", sent=encoded())
    theme = api.get(DEFAULT).json
    address = theme["page_background"]["background_image_url"]
    assert address.endswith(stored.path)
    assert address.startswith("http")
    key = theme.pop("themeId")
    assert api.patch(f"{THEMES}/{key}", theme).json["page_background"]["background_image_url"] == address
    assert BrandingTheme.objects.of(tenant.pk).get().values["page_background"]["background_image_url"] == stored.path
    theme["page_background"]["background_image_url"] = ""
    api.patch(f"{THEMES}/{key}", theme)
    assert not BrandingPicture.objects.of(tenant.pk).exists()


def test_a_picture_of_another_tenant_is_accepted_only_with_the_host_of_that_tenant(api: Management, tenant: Tenant) -> None:
    other = new_tenant()
    stored = upload_picture(tenant_id=other.pk, kind="logo", sent=encoded())
    assert api.patch("branding", {"logo_url": stored.path}).status == 400
    assert api.post(THEMES, changed("widget.logo_url", stored.path)).status == 400
    own = f"https://{tenant.pk}.example.test{stored.path}"
    assert "There is no such picture" in api.patch("branding", {"logo_url": own}).json["message"]
    foreign = f"https://{other.pk}.example.test{stored.path}"
    assert api.patch("branding", {"logo_url": foreign}).json["logo_url"] == foreign


def test_every_default_is_within_its_bounds() -> None:
    for path, member in members():
        if member.kind == "number":
            assert member.least <= member.default <= member.most, path
