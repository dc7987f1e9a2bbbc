"""A form field for a map of JSON values: a row with a name and a value for each member. Nested values are entered as JSON text."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from foundation.admin.json_fields import ShapedJSONField, pretty
from foundation.admin.pair_fields import head_of, pairs_in

HOW_TO_ENTER = (
    'Numbers, true, false, lists and objects are entered as JSON. To store a number, true or false as text, put it in quotes: "5", "true".'
)
_EMPTY_ROWS = 3
# Django accepts 1000 fields in one request. A row has two fields, and a form has two such maps and other fields.
_MOST_ROWS = 200
_MOST_LETTERS = 255
_MOST_LINES = 8
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ROW = (
    '<div class="pair">'
    '<input type="text" id="id_{0}-name-{1}" name="{0}-name-{1}" value="{2}" maxlength="255" aria-label="{5} {3}">{4}'
    "</div>"
)
_LINE = '<input type="text" name="{0}-value-{1}" value="{2}" spellcheck="false" aria-label="Value {3}">'
_LINES = '<textarea name="{0}-value-{1}" rows="{4}" class="json-input" spellcheck="false" aria-label="Value {3}">{2}</textarea>'


class Rows(list[tuple[str, str]]):
    """Names and values as they were entered in rows. A value that was sent as JSON is never a `Rows`."""


class ValuesWidget(forms.Textarea):
    """Rows of a name and a value. If rows cannot represent the map, shows a text box with the JSON of the map."""

    # The heading of the column of names.
    head = "Name"

    class Media:
        js: ClassVar[list[str]] = ["theme/rows.js"]

    def id_for_label(self, id_: str) -> str:
        return f"{id_}-name-0" if id_ else id_

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if name in data:
            return super().value_from_datadict(data, files, name)
        return Rows(pairs_in(data, name))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-name-0" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        pairs = value if isinstance(value, Rows) else _pairs_of(value or "{}")
        if pairs is None:
            # The label of the field refers to the id of the first row. Without rows, the text box gets this id.
            return super().render(name, value, {**(attrs or {}), "id": f"id_{name}-name-0"}, renderer)
        rows = [*(pair for pair in pairs if any(pair)), *[("", "")] * _EMPTY_ROWS]
        return format_html(
            '<div class="pairs" data-most="{}">{}{}</div>',
            _MOST_ROWS,
            head_of(self.head, "Value"),
            format_html_join("", "{}", ((_row(name, self.head, *row),) for row in enumerate(rows))),
        )


class ValuesField(ShapedJSONField):
    """A map of JSON values. To remove a value, empty the inputs of its row. `head` is the heading of the names, such as "Claim"."""

    widget: ValuesWidget

    def __init__(self, *, head: str = "Name", **options: Any) -> None:
        super().__init__(widget=ValuesWidget(attrs={"rows": 5, "cols": 60, "spellcheck": "false", "class": "json-input"}), **options)
        self.widget.head = head
        self._noun = head.lower()

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, Rows):
            return super().to_python(value)
        found: dict[str, Any] = {}
        for key, text in value:
            if not key and text:
                raise ValidationError(f"Enter a {self._noun} for the value “{text[:40]}”.")
            if key in found:
                raise ValidationError(f"The {self._noun} “{key[:40]}” appears twice.")
            if key:
                found[key] = self._read(key, text)
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data if isinstance(data, Rows) else super().bound_data(data, initial)

    def prepare_value(self, value: Any) -> Any:
        """Return the entered rows. Without rows, return the text that was sent, or the JSON text of a stored value."""
        return value if isinstance(value, Rows) else super().prepare_value(value)

    def _read(self, key: str, text: str) -> Any:
        if not _is_json(text):
            return text
        try:
            return json.loads(text)
        except (RecursionError, ValueError) as error:
            message = f"The value of “{key[:40]}” cannot be read as JSON. If the value is text, put it in quotes."
            raise ValidationError(message, code="invalid") from error


def text_of(value: Any) -> str:
    """Return the text of a value in its row. Text that would be read as another value is quoted."""
    if isinstance(value, str) and not _is_json(value) and not _CONTROL.search(value):
        return value
    return pretty(value) if isinstance(value, (dict, list)) and value else json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    """Tell whether text is read as JSON: a number, true, false, null, a text in quotes, a list or an object."""
    text = text.strip()
    return text.startswith(("{", "[", '"')) or _LITERAL.fullmatch(text) is not None


def _pairs_of(text: str) -> Rows | None:
    """Return the rows of a JSON object; None for other text, for too many names, and for names that an input would change."""
    try:
        values = json.loads(text)
    except (RecursionError, ValueError):
        return None
    if not isinstance(values, dict) or len(values) > _MOST_ROWS:
        return None
    are_kept = all(0 < len(key) <= _MOST_LETTERS and not _CONTROL.search(key) for key in values)
    return Rows((key, text_of(value)) for key, value in values.items()) if are_kept else None


def _row(name: str, head: str, number: int, pair: tuple[str, str]) -> SafeString:
    key, text = pair
    lines = text.count("\n") + 1
    value = format_html(_LINE if lines == 1 else _LINES, name, number, text, number + 1, min(lines, _MOST_LINES))
    return format_html(_ROW, name, number, key, number + 1, value, head)
