"""Options of a connection as form fields, for strategies with a guide. Builds the fields and merges their values with other options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from foundation.admin.line_fields import LinesField
from identity.models import Connection
from identity.options.guides import GUIDES, Guide, OptionField

_PREFIX = "option_"
_SECRETS = ("secret", "key")
_WIDE = {"size": 60, "spellcheck": "false", "autocomplete": "off"}
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
    return GUIDES.get(strategy)


def field_name(option: OptionField) -> str:
    """Return the form field name of an option."""
    return f"{_PREFIX}{option.name}"


def form_fields(guide: Guide, row: Connection | None) -> dict[str, forms.Field]:
    """Return a form field for each option of a guide."""
    return {field_name(option): _field(option, row) for option in guide.fields}


def without_fields(guide: Guide, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have no form field."""
    named = {option.name for option in guide.fields}
    return {name: value for name, value in options.items() if name not in named}


def put_together(guide: Guide, cleaned: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options: the JSON of the form, overridden by the fields.

    An empty field does not override: the JSON may set the option, a sealed option is kept, and a readable option is removed.
    """
    options: dict[str, Any] = dict(cleaned.get("options") or {})
    for option in guide.fields:
        value = cleaned.get(field_name(option))
        if option.kind == "words" and value == _words(before.get(option.name)) and value:
            # Keep the type of an option that was stored as a list.
            options[option.name] = before[option.name]
        elif option.kind == "switch":
            if value is not option.default or option.name in before:
                options.setdefault(option.name, bool(value))
        elif value:
            options[option.name] = value
    return options


def missing_fields(guide: Guide, options: Mapping[str, Any], row: Connection) -> list[str]:
    """Return the required fields that a new row lacks or that a change removes."""
    is_new = row._state.adding
    return [
        field_name(option)
        for option in guide.fields
        if option.is_required
        and not options.get(option.name)
        and option.name not in row.sealed_options
        and (is_new or row.shown_options.get(option.name))
    ]


def typed_secrets(guide: Guide, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entered secrets of a submitted form."""
    found = {option.name: data.get(field_name(option)) for option in guide.fields if option.kind in _SECRETS}
    return {name: value for name, value in found.items() if value}


def _words(value: Any) -> str:
    return " ".join(word for word in value if isinstance(word, str)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _field(option: OptionField, row: Connection | None) -> forms.Field:
    shown: Mapping[str, Any] = row.shown_options if row is not None else {}
    named: dict[str, Any] = {"required": False, "label": option.label, "help_text": option.help_text, "initial": shown.get(option.name)}
    if option.is_required:
        # The service decides whether the option is required. The label only informs.
        named["label"] = f"{option.label} (required)"
    if option.kind in _SECRETS:
        is_kept = row is not None and option.name in row.sealed_options
        named["help_text"] = " ".join(part for part in (option.help_text, _KEPT if is_kept else "Encrypted and never shown again.") if part)
        named["widget"] = _secret_widget(option)
    match option.kind:
        case "words":
            return forms.CharField(
                **{**named, "initial": _words(shown.get(option.name))}, max_length=2000, widget=forms.TextInput(attrs=_WIDE)
            )
        case "lines":
            return LinesField(**named)
        case "pairs":
            return PairsField(rows=6, **named)
        case "switch":
            return forms.BooleanField(**{**named, "initial": shown.get(option.name, option.default)})
        case "choice":
            return forms.ChoiceField(choices=option.choices, **named)
    named.setdefault("widget", forms.TextInput(attrs=_WIDE))
    return forms.CharField(max_length=10_000, **named)


def _secret_widget(option: OptionField) -> forms.Widget:
    if option.kind == "key":
        return _KeyArea(
            attrs={"rows": 6, "cols": 66, "spellcheck": "false", "autocomplete": "off", "placeholder": "-----BEGIN PRIVATE KEY-----"}
        )
    return forms.PasswordInput(render_value=False, attrs={"size": 60, "autocomplete": "new-password"})
