"""Options of a connection as form fields, for strategies with a guide. Builds the fields and merges their values with other options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from foundation.admin.line_fields import LinesField
from identity.models import Connection
from identity.options.guide_fields import Guide, OptionField
from identity.options.guides import GUIDES
from identity.options.own_guides import DATABASE
from identity.options.schemas.nodes import names_of
from identity.options.stored_guides import STORED_GUIDES

_PREFIX = "option_"
_SECRETS = ("secret", "key")
_WIDE = {"size": 60, "spellcheck": "false", "autocomplete": "off"}
_AREA = {"rows": 6, "cols": 66, "spellcheck": "false", "autocomplete": "off"}
_KEPT = "Set. Leave empty to keep it."


class _KeyArea(forms.Textarea):
    """A multi-line secret that pages never show."""

    def format_value(self, value: Any) -> str:
        return ""


class PairsField(LinesField):
    """One `name = value` per line, as an object."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name} = {text}" for name, text in value.items()) if isinstance(value, Mapping) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != (initial or {}))
        except ValidationError:
            return True

    def clean(self, value: Any) -> Any:
        found: dict[str, str] = {}
        for line in super().clean(value):
            name, equals, text = (part.strip() for part in str(line).partition("="))
            if not (name and equals and text):
                raise ValidationError("Write one field = expression per line.")
            if name in found:
                raise ValidationError(f"{name} occurs twice.")
            found[name] = text
        return found


def guide_of(strategy: str) -> Guide | None:
    """Return the guide of a strategy; None if its connections are entered as JSON only."""
    return GUIDES.get(DATABASE if strategy == settings.DATABASE_STRATEGY else strategy) or STORED_GUIDES.get(strategy)


def field_name(option: OptionField) -> str:
    """Return the form field name of an option."""
    return f"{_PREFIX}{option.name.replace('.', '__')}"


def form_fields(guide: Guide, row: Connection | None) -> dict[str, forms.Field]:
    """Return a form field for each option of a guide."""
    return {field_name(option): _field(option, row) for option in guide.fields}


def option_at(options: Mapping[str, Any], name: str) -> Any:
    """Return the option with this name, or None if it is absent. In the name, a dot separates an object from its member."""
    found: Any = options
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def without_fields(guide: Guide, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have no form field."""
    return _without({option.name for option in guide.fields}, options)


def _without(names: set[str], options: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, value in options.items():
        path = f"{place}{name}"
        if path in names:
            continue
        if isinstance(value, Mapping) and any(each.startswith(f"{path}.") for each in names):
            if inner := _without(names, value, f"{path}."):
                left[name] = inner
        else:
            left[name] = value
    return left


def with_secrets(options: Mapping[str, Any], secrets: Mapping[str, Any], sealed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the entered secrets. The name of a stored secret is its path; None removes it."""
    whole: dict[str, Any] = deepcopy(dict(options))
    for name, value in secrets.items():
        *outer, last = names_of(name) if name in sealed else [name]
        place = whole
        for part in outer:
            inner = place.get(part)
            place[part] = inner if isinstance(inner, dict) else {}
            place = place[part]
        place[last] = value
    return whole


def put_together(guide: Guide, cleaned: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options: the JSON of the form, overridden by the fields.

    An empty field does not override: the JSON may set the option, a sealed option is kept, and a readable option is removed.
    """
    options: dict[str, Any] = deepcopy(cleaned.get("options") or {})
    for option in guide.fields:
        value, stored = cleaned.get(field_name(option)), option_at(before, option.name)
        if option.kind == "words" and value == _words(stored) and value:
            # Keep the type of an option that was stored as a list.
            _put(options, option.name, stored)
        elif option.kind == "switch":
            if (value is not option.default or stored is not None) and option_at(options, option.name) is None:
                _put(options, option.name, bool(value))
        elif value:
            _put(options, option.name, value)
    return options


def _put(options: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        inner = options.get(part)
        options[part] = dict(inner) if isinstance(inner, Mapping) else {}
        options = options[part]
    options[last] = value


def missing_fields(guide: Guide, options: Mapping[str, Any], row: Connection) -> list[str]:
    """Return the required fields that a new row lacks or that a change removes."""
    is_new = row._state.adding
    return [
        field_name(option)
        for option in guide.fields
        if option.is_required
        and not option_at(options, option.name)
        and option.name not in row.sealed_options
        and (is_new or option_at(row.shown_options, option.name))
    ]


def typed_secrets(guide: Guide, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entered secrets of a submitted form."""
    found = {option.name: data.get(field_name(option)) for option in guide.fields if option.kind in _SECRETS}
    return {name: value for name, value in found.items() if value}


def _words(value: Any) -> str:
    return " ".join(word for word in value if isinstance(word, str)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _field(option: OptionField, row: Connection | None) -> forms.Field:
    shown: Mapping[str, Any] = row.shown_options if row is not None else {}
    stored = option_at(shown, option.name)
    named: dict[str, Any] = {"required": False, "label": option.label, "help_text": option.help_text, "initial": stored}
    if option.is_required:
        # The service checks whether the option is set. The form only shows that it is required.
        named["label"] = f"{option.label} (required)"
    if option.kind in _SECRETS:
        is_kept = row is not None and option.name in row.sealed_options
        named["help_text"] = " ".join(part for part in (option.help_text, _KEPT if is_kept else "Encrypted and never shown again.") if part)
        named["widget"] = _secret_widget(option)
    return _SHAPES.get(option.kind, _text)(option, named)


def _secret_widget(option: OptionField) -> forms.Widget:
    if option.kind == "key":
        return _KeyArea(
            attrs={"rows": 6, "cols": 66, "spellcheck": "false", "autocomplete": "off", "placeholder": "-----BEGIN PRIVATE KEY-----"}
        )
    return forms.PasswordInput(render_value=False, attrs={"size": 60, "autocomplete": "new-password"})


def _text(_option: OptionField, named: dict[str, Any]) -> forms.Field:
    return forms.CharField(**{"max_length": 10_000, "widget": forms.TextInput(attrs=_WIDE), **named})


def _words_field(_option: OptionField, named: dict[str, Any]) -> forms.Field:
    return forms.CharField(**{**named, "initial": _words(named["initial"])}, max_length=2000, widget=forms.TextInput(attrs=_WIDE))


def _switch(option: OptionField, named: dict[str, Any]) -> forms.Field:
    return forms.BooleanField(**{**named, "initial": option.default if named["initial"] is None else named["initial"]})


def _choice(option: OptionField, named: dict[str, Any]) -> forms.Field:
    stored = named["initial"]
    # A stored value that the guide does not name is kept.
    own = () if stored in (None, *(value for value, _ in option.choices)) else ((str(stored), str(stored)),)
    return forms.ChoiceField(choices=(*option.choices, *own), **named)


def _number(option: OptionField, named: dict[str, Any]) -> forms.Field:
    least, most = option.bounds or (None, None)
    return forms.IntegerField(min_value=least, max_value=most, **named)


_SHAPES: Mapping[str, Callable[[OptionField, dict[str, Any]], forms.Field]] = {
    "words": _words_field,
    "lines": lambda _option, named: LinesField(**named),
    "pairs": lambda _option, named: PairsField(rows=6, **named),
    "switch": _switch,
    "choice": _choice,
    "number": _number,
    "area": lambda _option, named: forms.CharField(max_length=1_000_000, widget=forms.Textarea(attrs=_AREA), **named),
}
