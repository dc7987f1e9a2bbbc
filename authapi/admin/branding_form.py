"""The form of a tenant's branding: a field for each member of a theme, in groups, and fields for values outside the theme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from authapi.looks.addresses import LONGEST_ADDRESS, is_font, is_own_picture, is_picture
from authapi.looks.colors import is_color
from authapi.looks.contrast import Finding, findings
from authapi.looks.current import Looks
from authapi.looks.theme import FONT_STACKS, Member, Theme, default_theme, members, value_at, with_value
from authapi.services.branding import problems_of
from foundation.admin.shown_values import ShowsValues

_SEPARATOR = "__"
_BACKGROUND = ("page_background", "background_image_url")
_LABELS = {
    "primary_button": "Main button",
    "primary_button_label": "Text of the main button",
    "base_hover_color": "Buttons under the pointer",
    "base_focus_color": "Outline of the focused element",
    "error": "Error messages",
    "success": "Success messages",
    "widget_background": "Background of the box",
    "widget_border": "Border of the box",
    "header": "Heading",
    "body_text": "Text",
    "links_focused_components": "Links",
    "input_labels_placeholders": "Labels of fields",
    "input_background": "Background of fields",
    "input_border": "Border of fields",
    "input_filled_text": "Text in fields",
    "read_only_background": "Background of read-only fields",
    "secondary_button_border": "Border of other buttons",
    "secondary_button_label": "Text of other buttons",
    "background_color": "Background of the page",
    "page_layout": "Position of the box",
    "header_text_alignment": "Position of the heading",
    "social_buttons_layout": "Position of provider buttons",
    "logo_position": "Position of the logo",
    "logo_height": "Height of the logo",
    "reference_text_size": "Reference size of text",
    "links_style": "Style of links",
    "buttons_style": "Corners of buttons",
    "button_border_radius": "Radius of rounded buttons",
    "inputs_style": "Corners of fields",
    "input_border_radius": "Radius of rounded fields",
    "widget_corner_radius": "Radius of the box",
    "show_widget_shadow": "Shadow under the box",
    "button_border_weight": "Width of the border of buttons",
    "input_border_weight": "Width of the border of fields",
    "widget_border_weight": "Width of the border of the box",
}
_CHOICES = {
    "center": "Center",
    "left": "Left",
    "right": "Right",
    "none": "No logo",
    "pill": "Pill",
    "rounded": "Rounded",
    "sharp": "Sharp",
    "normal": "Bold, not underlined",
    "underlined": "Underlined",
    "bottom": "Below the password form",
    "top": "Above the password form",
}
_TEXTS = {
    "title": "Heading",
    "subtitle": "Text under the heading",
    "body_text": "Text",
    "buttons_text": "Buttons",
    "input_labels": "Labels of fields",
    "links": "Links",
}


def _name(*path: str) -> str:
    return _SEPARATOR.join(path)


def _colors(*names: str) -> tuple[str, ...]:
    return tuple(_name("colors", name) for name in names)


def _borders(*names: str) -> tuple[str, ...]:
    return tuple(_name("borders", name) for name in names)


@dataclass(frozen=True)
class Group:
    """Fields under one heading. The fields in `further` are collapsed. `pictures` can be uploaded under this heading."""

    title: str
    help_text: str
    fields: tuple[str, ...]
    further: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


GROUPS = (
    Group(
        "Logo and icon",
        "Upload a PNG, JPEG, WebP or GIF file of at most 900 KB, or enter the address of a picture. The login pages show an uploaded "
        "picture at once, without Save.",
        ("logo_url", _name("widget", "logo_position"), _name("widget", "logo_height"), "favicon_url"),
        pictures=("logo", "favicon"),
    ),
    Group(
        "Colors",
        "Text needs a contrast of at least 4.5:1 to its background (WCAG AA). If the contrast is lower, the pages use the nearest "
        "color with a contrast of 4.5:1. You cannot save a text color with a contrast below 3:1.",
        (
            *_colors("primary_button", "primary_button_label"),
            _name("page_background", "background_color"),
            *_colors("widget_background", "header", "body_text", "links_focused_components"),
        ),
        _colors(
            "widget_border",
            "input_labels_placeholders",
            "input_background",
            "input_border",
            "input_filled_text",
            "read_only_background",
            "secondary_button_border",
            "secondary_button_label",
            "icons",
            "error",
            "success",
            "base_hover_color",
            "base_focus_color",
        ),
    ),
    Group(
        "Background and layout",
        "The box contains the login form. On narrow screens, the box fills the page and covers the background.",
        (
            _name(*_BACKGROUND),
            _name("page_background", "page_layout"),
            _name("widget", "header_text_alignment"),
            _name("widget", "social_buttons_layout"),
        ),
        pictures=("background",),
    ),
    Group(
        "Font",
        "The fonts in the list are part of the operating systems of users, so the pages load no font from another server.",
        ("font_stack", "font_url", _name("fonts", "reference_text_size"), _name("fonts", "links_style")),
        tuple(_name("fonts", text, part) for text in _TEXTS for part in ("size", "bold")),
    ),
    Group(
        "Corners and borders",
        "",
        _borders("buttons_style", "inputs_style", "widget_corner_radius", "show_widget_shadow"),
        _borders("button_border_radius", "button_border_weight", "input_border_radius", "input_border_weight", "widget_border_weight"),
    ),
)
_ELSEWHERE = "The https address of a picture on another server. It replaces an uploaded picture."
# The form field for the URL of an external picture, by kind of picture.
ADDRESS_FIELDS: Mapping[str, str] = {"logo": "logo_url", "favicon": "favicon_url", "background": _name(*_BACKGROUND)}
_SHOWN = frozenset(name for group in GROUPS for name in (*group.fields, *group.further))


class LooksForm(ShowsValues, forms.Form):
    """The form of the branding. Its fields come from the table of theme members. If a URL is empty, an uploaded picture is kept."""

    font_stack = forms.ChoiceField(required=False, label="Font", choices=[(name, label) for name, (label, _) in FONT_STACKS.items()])
    font_url = forms.CharField(
        required=False,
        max_length=LONGEST_ADDRESS,
        label="External font file",
        widget=forms.TextInput(attrs={"size": 50, "placeholder": "https://", "spellcheck": "false"}),
        help_text="The https address of a .woff2, .woff, .ttf or .otf file, which replaces the font above. The server of the file sees "
        "each "
        "visit of a login page.",
    )

    def __init__(self, looks: Looks, data: Any = None) -> None:
        super().__init__(data)
        self._looks = looks
        self._theme = with_readable_default(looks)
        for path, member in members():
            if _name(*path) in _SHOWN and member.kind != "picture":
                self.fields[_name(*path)] = _field(path, member)
        for name, label in (
            ("logo_url", "Address of the logo"),
            ("favicon_url", "Address of the icon"),
            (_name(*_BACKGROUND), "Address of the background"),
        ):
            self.fields[name] = _address(label)
        for kind, address in self._uploaded().items():
            if is_own_picture(address):
                self.fields[f"remove_{kind}"] = forms.BooleanField(required=False, label="Remove this picture when you save")
        self.initial = self._stored()

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for name in ADDRESS_FIELDS.values():
            if values.get(name) and not is_picture(values[name]):
                self.add_error(name, "Enter an address that starts with https://, without spaces and quotation marks.")
        if values.get("font_url") and not is_font(values["font_url"]):
            self.add_error("font_url", "Enter the https address of a font file: .woff2, .woff, .ttf or .otf.")
        if not self.errors:
            for path, texts in problems_of(self.theme()).items():
                name = path.replace(".", _SEPARATOR)
                self.add_error(name if name in self.fields else None, texts)
        return values

    def theme(self) -> Theme:
        """Return the theme of the form. Members of the theme without a field keep their values."""
        theme = dict(self._theme)
        for path, member in members():
            name = _name(*path)
            if name in self.fields and member.kind != "picture":
                theme = with_value(theme, path, _plain(self.cleaned_data.get(name)))
                if member.kind == "color" and not self.cleaned_data.get(name):
                    theme = _without(theme, path)
        theme = with_value(theme, _BACKGROUND, self._picture("background"))
        # A theme can contain a logo and a font, too. The form stores them only outside the theme (`branding`), so that two settings cannot
        # contradict each other.
        return with_value(with_value(theme, ("widget", "logo_url"), ""), ("fonts", "font_url"), "")

    def branding(self) -> dict[str, str | None]:
        """Return the values outside the theme. Two of these values are colors, which are copied from the theme."""
        colors = {"primary_color": ("colors", "primary_button"), "page_background": ("page_background", "background_color")}
        # The management interface accepts only six digits for these two colors.
        plain = {name: value if len(value := str(value_at(self.theme(), path))) == 7 else None for name, path in colors.items()}
        return {
            "logo_url": self._picture("logo"),
            "favicon_url": self._picture("favicon"),
            "font_url": self.cleaned_data["font_url"],
            "font_stack": self.cleaned_data["font_stack"],
            **plain,
        }

    def findings(self) -> list[Finding]:
        """Return the colors that the pages replace because their contrast is too low."""
        return findings(self.theme()) if self.is_bound and self.is_valid() else findings(self._theme)

    def notices(self) -> dict[str, str]:
        """Return a mapping from the name of a field to the sentence about the corrected color of this field."""
        return {_name(*found.path): found.sentence for found in self.findings() if not found.is_refused}

    def groups(self) -> Iterator[tuple[Group, Sequence[Any], Sequence[Any]]]:
        """Yield each group with its fields and its collapsed fields."""
        notices = self.notices()
        for group in GROUPS:
            yield group, [_shown(self, name, notices) for name in group.fields], [_shown(self, name, notices) for name in group.further]

    def _stored(self) -> dict[str, Any]:
        values = {_name(*path): value_at(self._theme, path) for path, _ in members()}
        shown = {ADDRESS_FIELDS[kind]: "" if is_own_picture(address) else address for kind, address in self._uploaded().items()}
        return {**values, **shown, "font_url": self._looks.font, "font_stack": self._looks.font_stack}

    def _uploaded(self) -> dict[str, str]:
        looks = self._looks
        return {"logo": looks.logo_url, "favicon": looks.favicon_url, "background": looks.background}

    def _picture(self, kind: str) -> str:
        """Return the URL to store. An uploaded picture stays unless the form contains a URL or removes the picture."""
        sent, stored = str(self.cleaned_data.get(ADDRESS_FIELDS[kind]) or ""), self._uploaded()[kind]
        stays = not sent and is_own_picture(stored) and not self.cleaned_data.get(f"remove_{kind}")
        return stored if stays else sent


def with_readable_default(looks: Looks) -> Theme:
    """Return the theme of the looks. If the theme lacks a required group, the result has the default values of this group."""
    return {**default_theme(), **looks.theme}


def _shown(form: LooksForm, name: str, notices: Mapping[str, str]) -> Any:
    return {"field": form[name], "notice": notices.get(name, ""), "is_color": isinstance(form.fields[name], ColorField)}


class ColorField(forms.CharField):
    """A color as text, so that the field works without JavaScript. The script adds a color picker."""

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and not is_color(value):
            raise forms.ValidationError("Enter a color as # and 3, 4, 6 or 8 hexadecimal digits, such as #4f46e5.")


def _field(path: tuple[str, ...], member: Member) -> forms.Field:
    label = _LABELS.get(path[-1], path[-1].replace("_", " ").capitalize())
    if len(path) == 3:
        label = f"{_TEXTS[path[1]]}: {'bold' if path[2] == 'bold' else 'size in percent'}"
    effect = _effect(member, label)
    if member.kind == "color":
        widget = forms.TextInput(attrs={"size": 9, "maxlength": 9, "spellcheck": "false", "data-color": ""})
        help_text = effect if member.is_required else f"{effect} If this is empty, the color is chosen automatically.".lstrip()
        return ColorField(required=member.is_required, max_length=9, label=label, help_text=help_text, widget=widget)
    if member.kind == "number":
        return forms.FloatField(
            min_value=member.least,
            max_value=member.most,
            label=label,
            help_text=f"{effect} From {member.least:g} to {member.most:g}.".lstrip(),
            widget=forms.NumberInput(attrs={"step": "any"}),
        )
    if member.kind == "switch":
        return forms.BooleanField(required=False, label=label, help_text=effect)
    choices = [(choice, _CHOICES.get(choice, choice)) for choice in member.choices]
    return forms.ChoiceField(label=label, choices=choices, help_text=effect)


def _effect(member: Member, label: str) -> str:
    """Return the help text of a member; empty if it only repeats the label."""
    return "" if member.effect.removeprefix("The ").rstrip(".").casefold() == label.casefold() else member.effect


def _address(label: str) -> forms.Field:
    widget = forms.TextInput(attrs={"size": 50, "placeholder": "https://", "spellcheck": "false"})
    return forms.CharField(required=False, max_length=LONGEST_ADDRESS, label=label, widget=widget, help_text=_ELSEWHERE)


def _plain(value: Any) -> Any:
    """Convert a float without a fraction to an integer, as in the themes that clients send."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without(theme: Theme, path: tuple[str, ...]) -> Theme:
    inner = {name: value for name, value in theme[path[0]].items() if name != path[1]}
    return {**theme, path[0]: inner}
