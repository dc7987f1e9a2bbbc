"""The form of a tenant's looks: a field for each member of a theme, in groups, and what stands beside the theme."""

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

_SEPARATOR = "__"
_BACKGROUND = ("page_background", "background_image_url")
_LABELS = {
    "primary_button": "Main button",
    "primary_button_label": "Text of the main button",
    "base_hover_color": "Main button under the pointer",
    "base_focus_color": "Outline of the focus",
    "widget_background": "Box",
    "widget_border": "Border of the box",
    "header": "Heading",
    "body_text": "Text",
    "links_focused_components": "Links",
    "input_labels_placeholders": "Names of fields",
    "input_background": "Fields",
    "input_border": "Border of fields",
    "input_filled_text": "Text in fields",
    "read_only_background": "Fields that cannot be changed",
    "secondary_button_border": "Border of other buttons",
    "secondary_button_label": "Text of other buttons",
    "background_color": "Page",
    "page_layout": "Place of the box",
    "header_text_alignment": "Place of the heading",
    "social_buttons_layout": "Other ways to log in",
    "logo_position": "Place of the logo",
    "logo_height": "Height of the logo",
    "reference_text_size": "Size of text",
    "links_style": "Links",
    "buttons_style": "Corners of buttons",
    "button_border_radius": "Radius of rounded buttons",
    "inputs_style": "Corners of fields",
    "input_border_radius": "Radius of rounded fields",
    "widget_corner_radius": "Radius of the box",
    "show_widget_shadow": "Shadow under the box",
    "button_border_weight": "Border of buttons",
    "input_border_weight": "Border of fields",
    "widget_border_weight": "Border of the box",
}
_CHOICES = {
    "center": "Center",
    "left": "Left",
    "right": "Right",
    "none": "No logo",
    "pill": "Pill",
    "rounded": "Rounded",
    "sharp": "Sharp",
    "normal": "Bold, without a line",
    "underlined": "Underlined",
    "bottom": "Below the form with the password",
    "top": "Above the form with the password",
}
_TEXTS = {
    "title": "Heading",
    "subtitle": "Text under the heading",
    "body_text": "Text",
    "buttons_text": "Buttons",
    "input_labels": "Names of fields",
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
    """Fields under one heading; `further` are put away, and `pictures` can be uploaded there."""

    title: str
    help_text: str
    fields: tuple[str, ...]
    further: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


GROUPS = (
    Group(
        "Logo and icon",
        "Upload a PNG, JPEG, WebP or GIF file of at most 900 KB, or name an address elsewhere. Uploaded pictures show at once.",
        ("logo_url", _name("widget", "logo_position"), _name("widget", "logo_height"), "favicon_url"),
        pictures=("logo", "favicon"),
    ),
    Group(
        "Colors",
        "Text needs a contrast of 4.5:1 (WCAG AA). A color with less gets the nearest shade that has it; below 3:1 it is refused.",
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
        "On narrow screens the box fills the page, and the background is not shown.",
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
        "The fonts of the list are on people's devices: nothing is loaded, and no other server learns of a login.",
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
# The field that names a picture elsewhere, by the kind of the picture.
ADDRESS_FIELDS: Mapping[str, str] = {"logo": "logo_url", "favicon": "favicon_url", "background": _name(*_BACKGROUND)}
_SHOWN = frozenset(name for group in GROUPS for name in (*group.fields, *group.further))


class LooksForm(forms.Form):
    """The fields are made of the table of the theme. An empty address keeps an uploaded picture, which has a button of its own."""

    font_stack = forms.ChoiceField(required=False, label="Font", choices=[(name, label) for name, (label, _) in FONT_STACKS.items()])
    font_url = forms.CharField(
        required=False,
        max_length=LONGEST_ADDRESS,
        label="Font file elsewhere",
        widget=forms.TextInput(attrs={"size": 50, "placeholder": "https://", "spellcheck": "false"}),
        help_text="Comes before the font above. The https address of a .woff2, .woff, .ttf or .otf file. Its server sees each visit.",
    )

    def __init__(self, looks: Looks, data: Any = None) -> None:
        super().__init__(data)
        self._looks = looks
        self._theme = with_readable_default(looks)
        for path, member in members():
            if _name(*path) in _SHOWN and member.kind != "picture":
                self.fields[_name(*path)] = _field(path, member)
        for name, label in (("logo_url", "Logo elsewhere"), ("favicon_url", "Icon elsewhere"), (_name(*_BACKGROUND), "Picture elsewhere")):
            self.fields[name] = _address(label)
        for kind, address in self._uploaded().items():
            if is_own_picture(address):
                self.fields[f"remove_{kind}"] = forms.BooleanField(required=False, label="Remove it when this form is saved")
        self.initial = self._stored()

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for name in ADDRESS_FIELDS.values():
            if values.get(name) and not is_picture(values[name]):
                self.add_error(name, "An address that starts with https:// is expected, without quotation marks and spaces.")
        if values.get("font_url") and not is_font(values["font_url"]):
            self.add_error("font_url", "The https address of a font file is expected: .woff2, .woff, .ttf or .otf.")
        if not self.errors:
            for path, texts in problems_of(self.theme()).items():
                name = path.replace(".", _SEPARATOR)
                self.add_error(name if name in self.fields else None, texts)
        return values

    def theme(self) -> Theme:
        """Return the theme that the form says, with what it does not show as it was."""
        theme = dict(self._theme)
        for path, member in members():
            name = _name(*path)
            if name in self.fields and member.kind != "picture":
                theme = with_value(theme, path, _plain(self.cleaned_data.get(name)))
                if member.kind == "color" and not self.cleaned_data.get(name):
                    theme = _without(theme, path)
        theme = with_value(theme, _BACKGROUND, self._picture("background"))
        # The logo and the font have one place, so that two settings cannot contradict each other.
        return with_value(with_value(theme, ("widget", "logo_url"), ""), ("fonts", "font_url"), "")

    def branding(self) -> dict[str, str | None]:
        """Return the looks beside the theme; the two colors are those of the theme."""
        colors = {"primary_color": ("colors", "primary_button"), "page_background": ("page_background", "background_color")}
        # The interface takes six digits for these two.
        plain = {name: value if len(value := str(value_at(self.theme(), path))) == 7 else None for name, path in colors.items()}
        return {
            "logo_url": self._picture("logo"),
            "favicon_url": self._picture("favicon"),
            "font_url": self.cleaned_data["font_url"],
            "font_stack": self.cleaned_data["font_stack"],
            **plain,
        }

    def findings(self) -> list[Finding]:
        """Return the colors that the pages correct."""
        return findings(self.theme()) if self.is_bound and self.is_valid() else findings(self._theme)

    def notices(self) -> dict[str, str]:
        """Return the sentences about corrected colors by the names of the fields."""
        return {_name(*found.path): found.sentence for found in self.findings() if not found.is_refused}

    def groups(self) -> Iterator[tuple[Group, Sequence[Any], Sequence[Any]]]:
        """Yield each group with its fields, and with those that are put away."""
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
        """Return the address that is to be kept: an uploaded picture stays unless another is named, or it is to be removed."""
        sent, stored = str(self.cleaned_data.get(ADDRESS_FIELDS[kind]) or ""), self._uploaded()[kind]
        stays = not sent and is_own_picture(stored) and not self.cleaned_data.get(f"remove_{kind}")
        return stored if stays else sent


def with_readable_default(looks: Looks) -> Theme:
    """Return the theme of a tenant, or one that looks as the tenant does without one."""
    return {**default_theme(), **looks.theme}


def _shown(form: LooksForm, name: str, notices: Mapping[str, str]) -> Any:
    return {"field": form[name], "notice": notices.get(name, ""), "is_color": isinstance(form.fields[name], ColorField)}


class ColorField(forms.CharField):
    """A color as text, so that it works without script; the script puts a picker beside it."""

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and not is_color(value):
            raise forms.ValidationError("A color is # and 3, 4, 6 or 8 hexadecimal digits.")


def _field(path: tuple[str, ...], member: Member) -> forms.Field:
    label = _LABELS.get(path[-1], path[-1].replace("_", " ").capitalize())
    if len(path) == 3:
        label = f"{_TEXTS[path[1]]}, {'bold' if path[2] == 'bold' else 'size in percent'}"
    if member.kind == "color":
        widget = forms.TextInput(attrs={"size": 9, "maxlength": 9, "spellcheck": "false", "data-color": ""})
        help_text = member.effect if member.is_required else f"{member.effect} Empty: chosen by itself."
        return ColorField(required=member.is_required, max_length=9, label=label, help_text=help_text, widget=widget)
    if member.kind == "number":
        return forms.FloatField(
            min_value=member.least,
            max_value=member.most,
            label=label,
            help_text=f"{member.effect} {member.least:g} to {member.most:g}.",
            widget=forms.NumberInput(attrs={"step": "any"}),
        )
    if member.kind == "switch":
        return forms.BooleanField(required=False, label=label, help_text=member.effect)
    choices = [(choice, _CHOICES.get(choice, choice)) for choice in member.choices]
    return forms.ChoiceField(label=label, choices=choices, help_text=member.effect)


def _address(label: str) -> forms.Field:
    widget = forms.TextInput(attrs={"size": 50, "placeholder": "https://", "spellcheck": "false"})
    return forms.CharField(required=False, max_length=LONGEST_ADDRESS, label=label, widget=widget, help_text="An https address.")


def _plain(value: Any) -> Any:
    """Return a whole number without a fraction, as clients send it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without(theme: Theme, path: tuple[str, ...]) -> Theme:
    inner = {name: value for name, value in theme[path[0]].items() if name != path[1]}
    return {**theme, path[0]: inner}
