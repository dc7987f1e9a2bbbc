"""The theme of a tenant: each member with its name on the wire, bounds, default and effect on the pages. Pure.

The API bodies, the form of the admin and the reference are built from these tables. `stylesheet` implements the effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from authapi.looks.colors import is_color

Kind = Literal["color", "number", "switch", "choice", "picture", "font"]
Theme = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """One value of the theme.

    `effect` describes its effect on the pages. A value without an effect is only stored, and `idle` gives the reason.
    """

    kind: Kind
    default: Any
    effect: str = ""
    idle: str = ""
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()
    is_required: bool = True


def _color(default: str, effect: str, *, is_required: bool = True) -> Member:
    return Member("color", default, effect, is_required=is_required)


def _number(default: float, least: float, most: float, effect: str) -> Member:
    return Member("number", default, effect, least=least, most=most)


def _choice(default: str, choices: tuple[str, ...], effect: str) -> Member:
    return Member("choice", default, effect, choices=choices)


def _text(words: str, size: float, *, bold: bool, most: float = 150) -> Mapping[str, Member]:
    return {
        "bold": Member("switch", bold, f"Shows {words} in bold."),
        "size": _number(size, 75, most, f"The size of {words}, in percent of the reference size."),
    }


_STYLES = ("pill", "rounded", "sharp")
_SIDES = ("center", "left", "right")

BORDERS: Mapping[str, Member] = {
    "button_border_radius": _number(8, 1, 10, "Corners of buttons in pixels, if their style is rounded."),
    "button_border_weight": _number(1, 0, 10, "Width of the border of buttons in pixels."),
    "buttons_style": _choice("rounded", _STYLES, "Corners of buttons."),
    "input_border_radius": _number(8, 0, 10, "Corners of fields in pixels, if their style is rounded."),
    "input_border_weight": _number(1, 0, 3, "Width of the border of fields in pixels; at least 1, so that fields are visible."),
    "inputs_style": _choice("rounded", _STYLES, "Corners of fields."),
    "show_widget_shadow": Member("switch", True, "A shadow under the box."),  # noqa: FBT003  (a default)
    "widget_border_weight": _number(1, 0, 10, "Width of the border of the box in pixels."),
    "widget_corner_radius": _number(16, 0, 50, "Corners of the box in pixels."),
}
COLORS: Mapping[str, Member] = {
    "primary_button": _color("#4f46e5", "The main button of a page."),
    "primary_button_label": _color("#ffffff", "Text of the main button."),
    "base_hover_color": _color("", "This color is mixed into the color of a button under the pointer.", is_required=False),
    "base_focus_color": _color("", "The outline of the focused element.", is_required=False),
    "widget_background": _color("#ffffff", "The box with the form."),
    "widget_border": _color("#d5d9e4", "Border of the box and lines in it."),
    "header": _color("#1f2430", "The heading."),
    "body_text": _color("#1f2430", "Text in the box."),
    "links_focused_components": _color("#4338ca", "Links."),
    "input_labels_placeholders": _color("#1f2430", "Labels of fields."),
    "input_background": _color("#ffffff", "Background of fields."),
    "input_border": _color("#7b8497", "Border of fields."),
    "input_filled_text": _color("#1f2430", "Text in fields."),
    "read_only_background": _color("", "Background of read-only fields.", is_required=False),
    "secondary_button_border": _color("#7b8497", "Border of the other buttons."),
    "secondary_button_label": _color("#1f2430", "Text of the other buttons."),
    "icons": _color("#565f73", "Icons in the box."),
    "error": _color("#b42318", "Error messages."),
    "success": _color("#067647", "Success messages."),
    "captcha_widget_theme": Member("choice", "auto", idle="no page shows a captcha", choices=("auto", "light", "dark"), is_required=False),
}
FONTS: Mapping[str, Member | Mapping[str, Member]] = {
    "font_url": Member("font", "", "Address of a font file (.woff2, .woff, .ttf or .otf) on a server that allows other origins."),
    "reference_text_size": _number(16, 12, 24, "The size in pixels on which the other sizes are based."),
    "title": _text("the heading", 150, bold=True),
    "subtitle": _text("the text under the heading", 100, bold=False),
    "body_text": _text("text in the box", 100, bold=False),
    "buttons_text": _text("text of buttons", 100, bold=True),
    "input_labels": _text("labels of fields", 100, bold=True),
    "links": _text("links", 100, bold=False),
    "links_style": _choice("underlined", ("normal", "underlined"), "Underlines links. Links without a line are bold."),
}
PAGE_BACKGROUND: Mapping[str, Member] = {
    "background_color": _color("#f4f5fa", "The page around the box."),
    "background_image_url": Member("picture", "", "A picture behind the box."),
    "page_layout": _choice("center", _SIDES, "Position of the box on a wide page."),
}
WIDGET: Mapping[str, Member] = {
    "logo_url": Member("picture", "", "The logo; empty for the logo of the tenant."),
    "logo_height": _number(48, 1, 100, "Height of the logo in pixels."),
    "logo_position": _choice("center", ("center", "left", "none", "right"), "Position of the logo in the box, or none."),
    "header_text_alignment": _choice("center", _SIDES, "Position of the heading."),
    "social_buttons_layout": _choice("bottom", ("bottom", "top"), "Position of provider buttons: below or above the password form."),
}
GROUPS: Mapping[str, Mapping[str, Member | Mapping[str, Member]]] = {
    "borders": BORDERS,
    "colors": COLORS,
    "fonts": FONTS,
    "page_background": PAGE_BACKGROUND,
    "widget": WIDGET,
}

# The fonts are system fonts: the browser loads no font, so no other server can observe a login.
FONT_STACKS: Mapping[str, tuple[str, str]] = {
    "": ("The font of the device", 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'),
    "humanist": ("Humanist", 'Seravek, "Gill Sans Nova", Ubuntu, Calibri, "DejaVu Sans", source-sans-pro, sans-serif'),
    "geometric": ("Geometric", 'Avenir, Montserrat, Corbel, "URW Gothic", source-sans-pro, sans-serif'),
    "grotesque": ("Neo-grotesque", 'Inter, Roboto, "Helvetica Neue", "Arial Nova", "Nimbus Sans", Arial, sans-serif'),
    "rounded": (
        "Rounded",
        'ui-rounded, "Hiragino Maru Gothic ProN", Quicksand, Comfortaa, "Arial Rounded MT", Calibri, sans-serif',
    ),
    "serif": ("Old-style serif", '"Iowan Old Style", "Palatino Linotype", "URW Palladio L", P052, serif'),
    "transitional": ("Transitional serif", 'Charter, "Bitstream Charter", "Sitka Text", Cambria, serif'),
    "slab": ("Slab serif", 'Rockwell, "Rockwell Nova", "Roboto Slab", "DejaVu Serif", "Sitka Small", serif'),
    "monospace": ("Monospaced", 'ui-monospace, "Cascadia Code", "Source Code Pro", Menlo, Consolas, "DejaVu Sans Mono", monospace'),
}


def members() -> Iterator[tuple[tuple[str, ...], Member]]:
    """Yield every member with its path, such as `("fonts", "title", "bold")`."""
    for group, inner in GROUPS.items():
        for name, found in inner.items():
            if isinstance(found, Member):
                yield (group, name), found
            else:
                yield from (((group, name, part), member) for part, member in found.items())


def value_at(theme: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value of a member, or its default if the theme does not set it."""
    found: Any = theme
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            return member_at(path).default
    return found


def color_at(theme: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """Return a color of the theme, or the default if the stored value is no color: only colors may get into the style sheet."""
    found = value_at(theme, path)
    return found if isinstance(found, str) and is_color(found) else str(member_at(path).default)


def member_at(path: tuple[str, ...]) -> Member:
    """Return the member at a path that `members` yields. Raises `KeyError` for any other path."""
    found: Any = GROUPS
    for name in path:
        found = found[name]
    if not isinstance(found, Member):
        raise KeyError(path)
    return found


def with_value(theme: Theme, path: tuple[str, ...], value: Any) -> Theme:
    """Return a copy of the theme with one value set."""
    changed = deepcopy(theme)
    inner = changed
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value
    return changed


def default_theme() -> Theme:
    """Return a theme that gives the pages their default looks. The theme omits members that are not required."""
    theme: Theme = {}
    for path, member in members():
        if member.is_required:
            theme = with_value(theme, path, member.default)
    return theme
