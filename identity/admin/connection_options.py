"""Options of a connection as form fields, for strategies with a guide. Builds the fields and merges their values with other options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any

from django import forms
from django.conf import settings

from foundation.admin.line_fields import LinesField
from identity.admin.sources.option_rows import ClaimsField, ParametersField, TextsField
from identity.models import Connection
from identity.options.discovery import METADATA_OPTION, STRATEGIES
from identity.options.enterprise_guides import MAPPED, MODE
from identity.options.guide_fields import Guide, OptionField
from identity.options.guides import GUIDES
from identity.options.own_guides import DATABASE
from identity.options.schemas.nodes import Members, is_declared, names_of, path_of
from identity.options.stored_guides import STORED_GUIDES

_PREFIX = "option_"
_SECRETS = ("secret", "key")
_WIDE = {"size": 60, "spellcheck": "false", "autocomplete": "off"}
_AREA = {"rows": 6, "cols": 66, "spellcheck": "false", "autocomplete": "off"}
_KEPT = "Set. Leave empty to keep it."
# Kinds of options that are objects. The form shows one row for each member of such an object.
_ROWS = ("claims", "texts", "parameters")
_TEXTS = ("text", "address", "area")


class _KeyArea(forms.Textarea):
    """A multi-line secret that pages never show."""

    def format_value(self, value: Any) -> str:
        return ""


def guide_of(strategy: str) -> Guide | None:
    """Return the guide of a strategy; None if its options have no fields of their own."""
    return GUIDES.get(DATABASE if strategy == settings.DATABASE_STRATEGY else strategy) or STORED_GUIDES.get(strategy)


def strategy_in_words(strategy: str) -> str:
    """Return the usual name of a strategy, such as "SAML"; the strategy itself if it has no guide."""
    guide = guide_of(strategy)
    return strategy if guide is None else guide.label


def field_name(option: OptionField) -> str:
    """Return the form field name of an option."""
    return f"{_PREFIX}{option.name.replace('.', '__')}"


def form_fields(guide: Guide, row: Connection | None) -> dict[str, forms.Field]:
    """Return a form field for each option of a guide."""
    return {field_name(option): _field(option, row) for option in guide.fields}


def sealed_path(option: OptionField) -> str:
    """Return the path of an option among the sealed options."""
    return path_of(tuple(option.name.split(".")))


def is_sealed(option: OptionField, row: Connection) -> bool:
    """Tell whether a row has a sealed value for the option.

    For some options, the sealed value can also be a text in place of the object that contains the option (`is_read_from_text`). Example:
    a decryption key without a certificate is stored as a text; with a certificate, both are stored as an object.
    """
    names = tuple(option.name.split("."))
    places = range(1, len(names) + 1) if option.is_read_from_text else (len(names),)
    return any(path_of(names[:count]) in row.sealed_options for count in places)


def option_at(options: Mapping[str, Any], name: str) -> Any:
    """Return the option with this name, or None if it is absent. In the name, a dot separates an object from its member."""
    found: Any = options
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def without_fields(guide: Guide, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have no form field."""
    return _without({option.name for option in guide.fields}, options)


def other_options(guide: Guide | None, row: Connection) -> dict[str, Any]:
    """Return the readable options without a field, except the metadata of the provider, which the service fetches itself."""
    shown = without_fields(guide, row.shown_options) if guide else row.shown_options
    if row.strategy in STRATEGIES:
        shown.pop(METADATA_OPTION, None)
    return shown


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


def with_secrets(options: Mapping[str, Any], secrets: Mapping[str, Any], sealed: Mapping[str, Any], schema: Members) -> dict[str, Any]:
    """Return the options with the entered secrets; None removes a secret.

    The name of a secret is a path if a secret is stored at this path, or if the name has a slash and the schema declares the path. Any
    other name is the name of one member.
    """
    whole: dict[str, Any] = deepcopy(dict(options))
    for name, value in secrets.items():
        is_path = name in sealed or ("/" in name and is_declared(schema, name))
        *outer, last = names_of(name) if is_path else [name]
        place = whole
        for part in outer:
            inner = place.get(part)
            place[part] = inner if isinstance(inner, dict) else {}
            place = place[part]
        place[last] = value
    return whole


def put_together(guide: Guide, cleaned: Mapping[str, Any], row: Connection) -> dict[str, Any]:
    """Return all options: the other options of the form, overridden by the fields.

    If a field is empty, the value among the other options is used. If there is no such value, a sealed option is kept, and a readable
    option is removed.
    """
    options: dict[str, Any] = deepcopy(cleaned.get("options") or {})
    before = row.shown_options
    for option in guide.fields:
        value, stored = cleaned.get(field_name(option)), option_at(before, option.name)
        if value and _is_same_text(option, value, stored):
            # Keep the type and the line ends of the stored option.
            _put(options, option.name, stored)
        elif option.kind == "switch":
            if (value is not option.default or stored is not None) and option_at(options, option.name) is None:
                _put(options, option.name, bool(value))
        elif value:
            _put(options, option.name, value)
    _keep_objects_of_secrets(guide, options, row)
    return options


def with_entered_objects(guide: Guide, options: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options. Each missing object is added as an empty object if the submitted form has a value in one of its fields."""
    for option in guide.fields:
        place, name = _object_of(option), field_name(option)
        is_entered = any(value and (key == name or key.startswith(f"{name}-")) for key, value in data.items())
        is_free = option_at(options, place) is None and isinstance(options.get(place.partition(".")[0], {}), Mapping)
        if place and is_entered and is_free:
            _put(options, place, {})
    return options


def sends_json(guide: Guide, data: Mapping[str, Any]) -> bool:
    """Tell whether a submitted form has JSON in place of rows, as programs send it. The JSON can contain secrets."""
    return any(option.kind in _ROWS and field_name(option) in data for option in guide.fields)


def replaced_secrets(guide: Guide, cleaned: Mapping[str, Any], row: Connection) -> list[str]:
    """Return the secret fields that must be entered again.

    If an object is stored as one secret, a value in one of its fields replaces the whole object. So the secrets whose fields are empty
    would be lost.
    """
    found = []
    for option in guide.fields:
        place = _object_of(option)
        if option.kind not in _SECRETS or not place or path_of(tuple(place.split("."))) not in row.sealed_options:
            continue
        entered = [one for one in guide.fields if _object_of(one) == place and cleaned.get(field_name(one))]
        if entered and option not in entered:
            found.append(field_name(option))
    return found


def _keep_objects_of_secrets(guide: Guide, options: dict[str, Any], row: Connection) -> None:
    """If all fields of an object were emptied, keep the object if it has a sealed member: without the object, this member would be lost."""
    for option in guide.fields:
        place = _object_of(option)
        is_removed = place and isinstance(option_at(row.shown_options, place), Mapping) and option_at(options, place) is None
        if is_removed and any(path.startswith(f"{path_of(tuple(place.split('.')))}/") for path in row.sealed_options):
            _put(options, place, {})


def _object_of(option: OptionField) -> str:
    """Return the name of the option if it is an object, otherwise the name of the object that contains it; empty without an object."""
    return option.name if option.kind in _ROWS else option.name.rpartition(".")[0]


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
        and not is_sealed(option, row)
        and (is_new or option_at(row.shown_options, option.name))
    ]


def unused_map(cleaned: Mapping[str, Any], changed: Collection[str]) -> tuple[str, str] | None:
    """Return the field and the text of an error, or None.

    It is an error if a change selects the attribute map but leaves the map without rows, or enters rows but does not select the map.
    """
    mode, rows = field_name(MODE), field_name(MAPPED)
    if rows not in cleaned or mode not in cleaned or not {mode, rows} & set(changed):
        return None
    if cleaned[mode] == "use_map" and not cleaned[rows]:
        return rows, "Add a row, or choose Standard claims under Source of the profile."
    if not cleaned[mode] and cleaned[rows] and rows in changed:
        return mode, "Choose Standard claims and map, or remove the rows of the attribute map."
    return None


def typed_secrets(guide: Guide, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entered secrets of a submitted form."""
    found = {option.name: data.get(field_name(option)) for option in guide.fields if option.kind in _SECRETS}
    return {name: value for name, value in found.items() if value}


def _words(value: Any) -> str:
    return " ".join(word for word in value if isinstance(word, str)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _shown_text(option: OptionField, value: Any) -> Any:
    """Return the text that the input shows for a stored list or number; other values unchanged."""
    if option.kind == "words":
        return _words(value)
    if option.kind not in _TEXTS or value is None or isinstance(value, str):
        return value
    between = "\n" if option.kind == "area" else ", "
    return between.join(map(str, value)) if isinstance(value, list) else str(value)


def _is_same_text(option: OptionField, value: Any, stored: Any) -> bool:
    """Tell whether a text that a browser sent is the stored value. Browsers change line ends, and the form removes outer spaces."""
    if option.kind not in (*_TEXTS, "words") or stored is None:
        return False
    entered, kept = (str(text).replace("\r\n", "\n").strip() for text in (value, _shown_text(option, stored)))
    return entered == kept


def _field(option: OptionField, row: Connection | None) -> forms.Field:
    shown: Mapping[str, Any] = row.shown_options if row is not None else {}
    stored = _shown_text(option, option_at(shown, option.name))
    named: dict[str, Any] = {"required": False, "label": option.label, "help_text": option.help_text, "initial": stored}
    if option.is_required:
        # The service checks whether the option is set. The form only shows that it is required.
        named["label"] = f"{option.label} (required)"
    if option.kind in _SECRETS:
        is_kept = row is not None and is_sealed(option, row)
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
    return forms.CharField(**named, max_length=2000, widget=forms.TextInput(attrs=_WIDE))


def _switch(option: OptionField, named: dict[str, Any]) -> forms.Field:
    return forms.BooleanField(**{**named, "initial": option.default if named["initial"] is None else named["initial"]})


def _choice(option: OptionField, named: dict[str, Any]) -> forms.Field:
    stored = named["initial"]
    # Offer a stored value that is not a choice of the guide, so that saving the form keeps it.
    own = () if stored in (None, *(value for value, _ in option.choices)) else ((str(stored), str(stored)),)
    return forms.ChoiceField(choices=(*option.choices, *own), **named)


def _number(option: OptionField, named: dict[str, Any]) -> forms.Field:
    least, most = option.bounds or (None, None)
    return forms.IntegerField(min_value=least, max_value=most, **named)


def _claims(option: OptionField, named: dict[str, Any]) -> forms.Field:
    return ClaimsField(claim=option.columns[0], fields=option.profile_fields, repeats=option.is_repeatable, **named)


def _texts(option: OptionField, named: dict[str, Any]) -> forms.Field:
    return TextsField(columns=option.columns, refuses_secrets=option.name == "authParams", **named)


_SHAPES: Mapping[str, Callable[[OptionField, dict[str, Any]], forms.Field]] = {
    "words": _words_field,
    "lines": lambda _option, named: LinesField(**named),
    "claims": _claims,
    "texts": _texts,
    "parameters": lambda _option, named: ParametersField(**named),
    "switch": _switch,
    "choice": _choice,
    "number": _number,
    "area": lambda _option, named: forms.CharField(max_length=1_000_000, widget=forms.Textarea(attrs=_AREA), **named),
}
