"""The style sheet of a theme: every member has an effect, and no value can end a CSS rule."""

from __future__ import annotations

import re
from typing import Any

import pytest

from authapi.looks.current import Looks, of_organization
from authapi.looks.stylesheet import font_rules, theme_stylesheet
from authapi.looks.theme import FONT_STACKS, Member, default_theme, members, value_at, with_value

PICTURE = "https://cdn.example.test/sea.jpg"
OTHER: dict[str, Any] = {"color": "#7a1f5c", "picture": PICTURE, "font": "https://cdn.example.test/brand.woff2"}
# Members of the theme that the base template of the pages uses outside of the style sheet.
ON_THE_PAGE = {("widget", "logo_url"), ("widget", "social_buttons_layout"), ("page_background", "page_layout")}


def looks_of_theme(theme: dict[str, Any]) -> Looks:
    return Looks(
        name="Acme",
        logo_url="https://cdn.example.test/logo.png",
        favicon_url="",
        primary_color="",
        page_background="",
        font_url="",
        font_stack="",
        theme=theme,
    )


def effects(theme: dict[str, Any]) -> tuple[Any, ...]:
    looks = looks_of_theme(theme)
    return looks.stylesheet, looks.logo, looks.layout, looks.shows_providers_first, looks.background, looks.font


def another(path: tuple[str, ...], member: Member) -> Any:
    if member.kind == "switch":
        return not member.default
    if member.kind == "choice":
        return next(choice for choice in member.choices if choice != member.default)
    if member.kind == "number":
        return member.most if member.default != member.most else member.least
    if path[-1].endswith(("background", "primary_button")):
        return "#f3e8d2"
    return "#5b0f3f" if path[-1] == "primary_button_label" else OTHER[member.kind]


@pytest.mark.parametrize(("path", "member"), list(members()), ids=lambda value: ".".join(value) if isinstance(value, tuple) else "")
def test_every_member_has_an_effect_or_a_documented_reason_for_having_none(path: tuple[str, ...], member: Member) -> None:
    theme = default_theme()
    if path[-1] in ("button_border_radius", "input_border_radius", "primary_button_label"):
        theme = with_value(theme, ("colors", "primary_button"), "#f3e8d2")
    if path == ("colors", "primary_button_label"):
        theme = with_value(theme, path, "#000000")
    has_effect = effects(with_value(theme, path, another(path, member))) != effects(theme)
    assert has_effect == bool(member.effect), path
    assert bool(member.effect) != bool(member.idle)


@pytest.mark.parametrize(
    "address",
    [
        'https://a.test/x"); } body { display: none',
        "https://a.test/x\\22",
        "https://a.test/x)",
        "https://a.test/x\n.png",
        "https://a.test/x;y.png",
        "javascript:alert(1)",
        "data:image/svg+xml,<svg onload=alert(1)>",
        "http://a.test/x.png",
        "//a.test/x.png",
        "https://a.test@b.test/x.png",
        "/u/pictures/../../admin.png",
        "https://a.test/'x.png",
    ],
)
def test_a_url_that_is_unsafe_in_css_or_in_a_security_policy_is_not_used(address: str) -> None:
    theme = with_value(default_theme(), ("page_background", "background_image_url"), address)
    theme = with_value(with_value(theme, ("widget", "logo_url"), address), ("fonts", "font_url"), address)
    looks = looks_of_theme(theme)
    assert "url(" not in looks.stylesheet
    assert (looks.background, looks.font, looks.logo) == ("", "", "https://cdn.example.test/logo.png")


@pytest.mark.parametrize("color", ["red;} body {display: none", "#fff}", "</style>", "url(https://a.test)", "expression(alert(1))"])
def test_an_invalid_stored_color_is_replaced_by_the_default_color(color: str) -> None:
    for path, member in members():
        if member.kind == "color":
            sheet = theme_stylesheet(with_value(default_theme(), path, color))
            assert color not in sheet
            assert set(re.findall(r"[^\s\w#:;(){}.,%/\"-]", sheet)) <= {"@"}


def test_a_bright_widget_background_applies_only_in_light_mode() -> None:
    bright = theme_stylesheet(default_theme())
    assert "@media (prefers-color-scheme: light) { :root { --card: #ffffff;" in bright
    assert "@media (prefers-color-scheme: dark) { :root { --link: #" in bright
    dark = default_theme()
    for name, color in {"widget_background": "#101010", "header": "#fff", "body_text": "#eee", "input_background": "#222"}.items():
        dark = with_value(dark, ("colors", name), color)
    sheet = theme_stylesheet(dark)
    assert "\n:root { --card: #101010;" in sheet
    assert "color-scheme: dark;" in sheet


def test_a_font_url_has_precedence_over_a_font_of_the_list() -> None:
    url = "https://cdn.example.test/brand.woff2"
    assert font_rules(url, "serif").startswith(f'@font-face {{ font-family: "tenant font"; src: url("{url}"); font-display: swap; }}')
    assert font_rules("https://cdn.example.test/brand.css", "serif") == f":root {{ --font: {FONT_STACKS['serif'][1]}; }}"
    assert font_rules("", "comic; }") == ""


def test_an_organization_sets_its_logo_and_its_colors() -> None:
    own = {"logo_url": "https://acme.example.test/l.png", "colors": {"primary": "#fc0", "page_background": "#012345"}}
    theme = with_value(default_theme(), ("page_background", "background_image_url"), PICTURE)
    looks = of_organization(looks_of_theme(theme), own)
    assert looks.logo == own["logo_url"]
    assert "--brand: #ffcc00; --on-brand: #000000;" in looks.stylesheet
    assert "--bg: #012345;" in looks.stylesheet
    assert looks.background == ""
    plain = of_organization(looks_of_theme({}), own)
    assert plain.stylesheet == ":root { --brand: #ffcc00; --on-brand: #000000; }\n:root { --bg: #012345; --on-bg: #ffffff; }"
    assert of_organization(looks_of_theme(theme), {"colors": {"primary": "#12345", "page_background": None}}) == looks_of_theme(theme)
    assert value_at(looks.theme, ("colors", "primary_button_label")) == "#000000"
