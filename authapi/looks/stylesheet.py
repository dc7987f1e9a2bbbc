"""Builds the style sheet of a tenant, which sets the CSS variables of the hosted pages from the tenant's looks. Pure.

Every value comes from a table, a number, a checked color or a checked URL, so no setting can end its CSS rule and begin another rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from authapi.looks.addresses import is_font, is_picture
from authapi.looks.colors import PART_CONTRAST, TEXT_CONTRAST, contrast, corrected, is_dark, mixed, opaque, readable_on
from authapi.looks.contrast import readable_colors
from authapi.looks.theme import FONT_STACKS, color_at, value_at

_PLAIN = re.compile(r"#[0-9a-fA-F]{6}")
# The color of the box in dark mode, if the tenant's box is light.
_DARK_CARD = "#181b25"
_HOVER_SHARE = 0.15
_CIRCLE = 999
# On narrower screens, the pages show only the box.
_WIDER_THAN_A_PHONE = "30.01rem"
_ALIGNMENTS = {"center": "center", "left": "start", "right": "end"}
_WEIGHTS = {True: "700", False: "400"}
# Links without underline differ from the surrounding text by their weight (WCAG 2.2, 1.4.1).
_UNLINED_WEIGHT = "600"


def plain_stylesheet(primary: str, background: str) -> str:
    """Return the style sheet of a tenant without a theme.

    If a color is empty, its rule is omitted, and the pages keep their default color.
    """
    rules = []
    if _PLAIN.fullmatch(primary):
        rules.append(f":root {{ --brand: {primary}; --on-brand: {readable_on(primary)}; }}")
    if _PLAIN.fullmatch(background):
        rules.append(_in_fitting_scheme(background, f":root {{ --bg: {background}; --on-bg: {readable_on(background)}; }}"))
    return "\n".join(rules)


def font_rules(font_url: str, font_stack: str) -> str:
    """Return the CSS rules that set the font of the pages; empty for the default font."""
    if font_stack not in FONT_STACKS:
        font_stack = ""
    stack = FONT_STACKS[font_stack][1]
    if is_font(font_url):
        face = f'@font-face {{ font-family: "tenant font"; src: url("{font_url}"); font-display: swap; }}'
        return f'{face}\n:root {{ --font: "tenant font", {stack}; }}'
    return f":root {{ --font: {stack}; }}" if font_stack else ""


def theme_stylesheet(theme: Mapping[str, Any]) -> str:
    """Return the style sheet of a theme, without its font."""
    card = opaque(_value(theme, "colors", "widget_background"))
    page = opaque(_value(theme, "page_background", "background_color"))
    rules = [_rule(_measures(theme) | _buttons(theme)), *_reference_size(theme)]
    surfaces = _rule(_surfaces(theme, card))
    if is_dark(card):
        rules.append(surfaces)
    else:
        # Users who prefer dark pages get a dark box, with links that are readable on the box.
        link = corrected(opaque(_value(theme, "colors", "links_focused_components")), _DARK_CARD)
        rules.append(f"@media (prefers-color-scheme: light) {{ {surfaces} }}")
        rules.append(f"@media (prefers-color-scheme: dark) {{ {_rule({'link': link})} }}")
    rules.append(_in_fitting_scheme(page, _rule({"bg": page, "on-bg": readable_on(page)})))
    rules += _picture(theme, page)
    return "\n".join(rule for rule in rules if rule)


def _measures(theme: Mapping[str, Any]) -> dict[str, str]:
    """Return the CSS variables for corners, borders, sizes and positions, by their names."""
    borders, widget = _group(theme, "borders"), _group(theme, "widget")
    found = {
        "radius": _px(borders("widget_corner_radius")),
        "card-border": _px(borders("widget_border_weight")),
        "button-radius": _corners(borders("buttons_style"), borders("button_border_radius")),
        "button-border": _px(borders("button_border_weight")),
        "input-radius": _corners(borders("inputs_style"), borders("input_border_radius")),
        "input-border": _px(max(1, borders("input_border_weight"))),
        "logo-height": _px(widget("logo_height")),
        "logo-align": _ALIGNMENTS.get(widget("logo_position"), "center"),
        "header-align": _ALIGNMENTS.get(widget("header_text_alignment"), "center"),
    }
    if borders("show_widget_shadow") is not True:
        found["card-shadow"] = "none"
    for name, variable in _TEXTS.items():
        found[f"{variable}-size"] = f"{_number(value_at(theme, ('fonts', name, 'size')) / 100)}rem"
        found[f"{variable}-weight"] = _WEIGHTS[value_at(theme, ("fonts", name, "bold")) is True]
    if value_at(theme, ("fonts", "links_style")) == "normal":
        found["link-decoration"] = "none"
        found["link-weight"] = max(found["link-weight"], _UNLINED_WEIGHT)
    return found


def _buttons(theme: Mapping[str, Any]) -> dict[str, str]:
    """Return the CSS variables for the colors of the main button. These colors are the same on light and dark pages."""
    button = opaque(_value(theme, "colors", "primary_button"))
    label = readable_colors(theme)["colors", "primary_button_label"]
    found = {"brand": button, "on-brand": label}
    if hover := _value(theme, "colors", "base_hover_color"):
        hovered = mixed(button, opaque(hover, button), _HOVER_SHARE)
        found["hover"] = hovered if contrast(label, hovered) >= TEXT_CONTRAST else button
    return found


def _surfaces(theme: Mapping[str, Any], card: str) -> dict[str, str]:
    """Return the CSS variables for the colors of the box and its contents."""
    shown = {path[-1]: color for path, color in readable_colors(theme).items()}
    text, field = shown["body_text"], opaque(_value(theme, "colors", "input_background"), card)
    quiet = corrected(mixed(text, card, 0.2), card)
    found = {
        "card": card,
        "line": opaque(_value(theme, "colors", "widget_border"), card),
        "fg": text,
        "quiet": quiet,
        "heading": shown["header"],
        "label": shown["input_labels_placeholders"],
        "link": shown["links_focused_components"],
        "field-bg": field,
        "field-fg": shown["input_filled_text"],
        "field": shown["input_border"],
        "readonly-bg": _read_only(theme, card, (text, quiet, shown["secondary_button_label"])),
        "quiet-fg": shown["secondary_button_label"],
        "quiet-line": opaque(_value(theme, "colors", "secondary_button_border"), card),
        "icon": shown["icons"],
    }
    for name, variable in (("error", "bad"), ("success", "good")):
        tint = mixed(card, shown[name], 0.06)
        found |= {variable: corrected(shown[name], tint), f"{variable}-bg": tint}
    focus = _value(theme, "colors", "base_focus_color")
    if focus:
        found["focus"] = corrected(opaque(focus, card), card, PART_CONTRAST)
    return found | ({"color-scheme": "dark"} if is_dark(card) else {})


def _read_only(theme: Mapping[str, Any], card: str, texts: Iterable[str]) -> str:
    """Return the background of read-only fields and hovered buttons.

    If this background would make a text unreadable, return the color of the box.
    """
    wished = _value(theme, "colors", "read_only_background")
    shown = opaque(wished, card) if wished else mixed(card, readable_on(card), 0.04)
    return shown if all(contrast(text, shown) >= TEXT_CONTRAST for text in texts) else card


def _picture(theme: Mapping[str, Any], page: str) -> list[str]:
    address = str(value_at(theme, ("page_background", "background_image_url")))
    if not is_picture(address):
        return []
    # Text outside the box gets the page color as background, because the picture behind the text may have any color. Narrow screens show no
    # picture.
    footer = f"body > footer {{ padding: 4px 16px; border-radius: {_CIRCLE}px; background: {page}; color: {readable_on(page)}; }}"
    beside = f"@media (min-width: {_WIDER_THAN_A_PHONE}) {{ {footer} }}"
    return [f':root {{ --bg-image: url("{address}"); }}', beside]


def _reference_size(theme: Mapping[str, Any]) -> list[str]:
    size = value_at(theme, ("fonts", "reference_text_size"))
    # The size is a percentage, so that the browser's text size still applies.
    return [] if size == 16 else [f":root {{ font-size: {_number(size / 16 * 100)}%; }}"]


def _in_fitting_scheme(background: str, rule: str) -> str:
    """Return the rule. If the background is light, the rule applies only to users who do not prefer dark pages."""
    return rule if is_dark(background) else f"@media (prefers-color-scheme: light) {{ {rule} }}"


def _rule(variables: Mapping[str, str]) -> str:
    texts = [f"{name if name == 'color-scheme' else f'--{name}'}: {value};" for name, value in variables.items()]
    return f":root {{ {' '.join(texts)} }}"


def _value(theme: Mapping[str, Any], group: str, name: str) -> str:
    """Return a color of the theme; empty if the theme does not set it."""
    return color_at(theme, (group, name))


def _group(theme: Mapping[str, Any], group: str) -> Any:
    return lambda name: value_at(theme, (group, name))


def _corners(style: str, radius: float) -> str:
    return _px({"pill": _CIRCLE, "sharp": 0}.get(style, radius))


def _px(value: float) -> str:
    return f"{_number(value)}px"


def _number(value: float) -> str:
    return f"{round(float(value), 4):g}"


_TEXTS = {
    "title": "title",
    "subtitle": "subtitle",
    "body_text": "text",
    "buttons_text": "button",
    "input_labels": "label",
    "links": "link",
}
