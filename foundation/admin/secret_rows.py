"""A form field for secrets with names: a row with an empty input for each stored secret, and empty rows for new ones.

A page never contains a secret value, neither a stored value nor a value that the form refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from foundation.admin.json_fields import ShapedJSONField
from foundation.admin.pair_fields import HEAD, pairs_in

_EMPTY_ROWS = 3
_STORED = (
    '<div class="pair pair-stored">'
    '<input type="text" id="id_{0}-name-{1}" name="{0}-name-{1}" value="{2}" readonly aria-label="Name {3}">'
    '<input type="password" name="{0}-value-{1}" placeholder="Set. Leave empty to keep it." autocomplete="new-password"'
    ' aria-label="Value {3}">'
    '<label class="pair-remove"><input type="checkbox" name="{0}-removed" value="{2}"> Remove'
    '<span class="visually-hidden"> {2}</span></label>'
    "</div>"
)
_NEW = (
    '<div class="pair">'
    '<input type="text" id="id_{0}-name-{1}" name="{0}-name-{1}" value="{2}" maxlength="255" spellcheck="false" aria-label="Name {3}">'
    '<input type="password" name="{0}-value-{1}" autocomplete="new-password" aria-label="Value {3}">'
    "</div>"
)


class SecretRows(list[tuple[str, str]]):
    """Names and values as they were entered, and the names to remove."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = (), removed: Sequence[str] = ()) -> None:
        super().__init__(pairs)
        self.removed = frozenset(removed)


class SecretRowsWidget(forms.Widget):
    """Rows of a name and a masked value. `stored` has the names of the stored secrets."""

    stored: Sequence[str] = ()

    class Media:
        js: ClassVar[list[str]] = ["theme/rows.js"]

    def id_for_label(self, id_: str) -> str:
        return f"{id_}-name-0" if id_ else id_

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return the rows that a page sends, or the JSON text that a program sends under the name of the field."""
        if name in data:
            return data.get(name)
        all_of = getattr(data, "getlist", lambda key: [data[key]] if key in data else [])
        return SecretRows(pairs_in(data, name), all_of(f"{name}-removed"))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-name-0" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        entered = [key for key, _ in value if key and key not in self.stored] if isinstance(value, SecretRows) else []
        count = len(self.stored)
        stored = format_html_join("", _STORED, ((name, number, key, number + 1) for number, key in enumerate(self.stored)))
        new = [*entered, *[""] * _EMPTY_ROWS]
        rows = format_html_join("", _NEW, ((name, number, key, number + 1) for number, key in enumerate(new, count)))
        return format_html('<div class="pairs">{}{}{}</div>', HEAD, stored, rows)


class SecretRowsField(ShapedJSONField):
    """A map of secrets by name. An empty value keeps a stored secret; None marks a secret to remove.

    With `has_objects`, a value that begins with a brace or a bracket is parsed as JSON.
    """

    widget: SecretRowsWidget

    def __init__(self, *, has_objects: bool = False, **options: Any) -> None:
        super().__init__(widget=SecretRowsWidget(), **options)
        self.has_objects = has_objects

    def name_stored(self, names: Sequence[str]) -> None:
        """Show a row for each of these secrets."""
        self.widget.stored = sorted(names)

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, SecretRows):
            return super().to_python(value)
        found: dict[str, Any] = {}
        for key, text in value:
            self._check(key.strip(), text, found)
            if key and text:
                found[key.strip()] = self._read(key, text)
        for key in value.removed:
            if key in found:
                raise ValidationError(f"{key} cannot be entered and removed at the same time.")
        return {**found, **{key: None for key in value.removed if key in self.widget.stored}}

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data if isinstance(data, SecretRows) else SecretRows()

    def prepare_value(self, value: Any) -> Any:
        return value

    def _check(self, key: str, text: str, found: dict[str, Any]) -> None:
        if text and not key:
            raise ValidationError("Enter a name for each value.")
        if key and not text and key not in self.widget.stored:
            raise ValidationError(f"Enter a value for “{key[:40]}”.")
        if key and text and key in found:
            raise ValidationError(f"The name “{key[:40]}” appears twice.")

    def _read(self, key: str, text: str) -> Any:
        if not (self.has_objects and text.lstrip().startswith(("{", "["))):
            return text
        try:
            return forms.JSONField().to_python(text)
        except (ValidationError, RecursionError, ValueError) as error:
            raise ValidationError(f"The value of “{key[:40]}” begins like JSON and is not valid JSON. Correct the value.") from error


def has_entries(data: Any, name: str) -> bool:
    """Tell whether a submitted form enters or removes a secret in the rows of the field."""
    return any((key.startswith(f"{name}-value-") or key == f"{name}-removed") and value for key, value in data.items())
