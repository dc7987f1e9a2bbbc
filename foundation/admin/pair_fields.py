"""A form field for a map of texts: a row of two inputs for each pair, and empty rows for new pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_EMPTY_ROWS = 3
_HEAD = '<div class="pair pair-head" aria-hidden="true"><span>{}</span><span>{}</span></div>'
_ROW = (
    '<div class="pair">'
    '<input type="text" id="id_{0}-name-{1}" name="{0}-name-{1}" value="{2}" maxlength="255" aria-label="Name {3}">'
    '<input type="text" name="{0}-value-{1}" value="{4}" maxlength="255" aria-label="Value {3}">'
    "</div>"
)
Pairs: TypeAlias = list[tuple[str, str]]


def head_of(name: str, value: str) -> SafeString:
    """Return the line with the heads of the two columns."""
    return format_html(_HEAD, name, value)


HEAD = head_of("Name", "Value")


def pairs_in(data: Mapping[str, Any], name: str) -> Pairs:
    """Return the name and the value of each row of a submitted form, in the order of the rows. `name` is the name of the field."""
    found = re.compile(rf"{re.escape(name)}-name-(\d{{1,4}})")
    numbers = sorted(int(match[1]) for key in data if (match := found.fullmatch(key)))
    return [(data.get(f"{name}-name-{number}", ""), data.get(f"{name}-value-{number}", "")) for number in numbers]


class PairsWidget(forms.Widget):
    """Rows of a name and a value. The names of the inputs end with the number of the row."""

    class Media:
        js: ClassVar[list[str]] = ["theme/rows.js"]

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most

    def id_for_label(self, id_: str) -> str:
        return f"{id_}-name-0" if id_ else id_

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Pairs:
        return [(data.get(f"{name}-name-{number}", ""), data.get(f"{name}-value-{number}", "")) for number in range(self.most)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-name-0" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        filled = [pair for pair in _pairs(value) if any(pair)]
        rows = [*filled, *[("", "")] * _EMPTY_ROWS][: self.most]
        numbered = ((name, number, key, number + 1, text) for number, (key, text) in enumerate(rows))
        return format_html('<div class="pairs" data-most="{}">{}{}</div>', self.most, HEAD, format_html_join("", _ROW, numbered))


class PairsField(forms.Field):
    """A map of texts with at most `most` pairs. To remove a pair, empty its inputs."""

    def __init__(self, *, most: int, **options: Any) -> None:
        options.setdefault("required", False)
        super().__init__(widget=PairsWidget(most=most), **options)

    def to_python(self, value: Any) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in _pairs(value):
            key = name.strip()
            if not key and text:
                raise ValidationError(f"Enter a name for the value “{text[:40]}”.")
            if key in found:
                raise ValidationError(f"The name “{key[:40]}” appears twice.")
            if "\x00" in name + text:
                raise ValidationError("Remove the null characters.")
            if key:
                found[key] = text
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return self.to_python(data) != (initial or {})
        except ValidationError:
            return True


def _pairs(value: Any) -> Pairs:
    if isinstance(value, Mapping):
        return [(str(name), str(text)) for name, text in value.items()]
    return list(value or [])
