"""A form field for a map that is entered as rows with fixed columns. The field keeps members that no row can represent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from foundation.admin.json_fields import ShapedJSONField, pretty

Cells = tuple[str, ...]
_EMPTY_ROWS = 3
# Django accepts 1000 inputs in one request, and each row has one input per column.
_MOST_ROWS = 100
_LONGEST_SHOWN = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_INPUT = (
    '<input type="text" id="id_{0}-{1}-{2}" name="{0}-{1}-{2}" value="{3}" maxlength="{4}" spellcheck="false" autocomplete="off"'
    ' aria-label="{5} {6}">'
)
_SELECT = '<select id="id_{0}-{1}-{2}" name="{0}-{1}-{2}" aria-label="{3} {4}">{5}</select>'
_KEPT = (
    '<div class="pair pair-stored">'
    '<span class="pair-name">{1}</span><code class="pair-value">{2}</code>'
    '<label class="pair-remove"><input type="checkbox" name="{0}-removed" value="{1}"{3}> Remove'
    '<span class="visually-hidden"> {1}</span></label>'
    "</div>"
)
_KEPT_WHOLE = (
    '<div class="pair pair-stored">'
    '<span class="pair-name">Stored value</span><code class="pair-value">{1}</code>'
    '<label class="pair-remove"><input type="checkbox" name="{0}-replaced" value="on"{2}> Remove'
    '<span class="visually-hidden"> the stored value</span></label>'
    "</div>"
)


@dataclass(frozen=True)
class Column:
    """A column of inputs, or of selects if it has choices. `key` is part of the names of its inputs."""

    key: str
    label: str
    choices: tuple[tuple[str, str], ...] = ()
    longest: int = 255

    @property
    def empty(self) -> str:
        """The text of the column in an empty row: the first choice of a select."""
        return self.choices[0][0] if self.choices else ""


class Rows(list[Cells]):
    """The cells of each row, and the stored members or value that the user wants to remove.

    `removed` contains the names of members that no row represents and that the user wants to remove. `is_replaced` means that a stored
    value is removed because it is not a map.
    """

    def __init__(self, rows: Sequence[Cells] = (), removed: Sequence[str] = (), *, is_replaced: bool = False) -> None:
        super().__init__(rows)
        self.removed = frozenset(removed)
        self.is_replaced = is_replaced


class RowsWidget(forms.Widget):
    """Rows of inputs below the headings of the columns. The names of the inputs end with the number of the row."""

    columns: Sequence[Column] = ()
    # The members that rows cannot represent, as texts.
    kept: Mapping[str, str] = {}
    whole: str | None = None

    class Media:
        js: ClassVar[list[str]] = ["theme/rows.js"]

    def id_for_label(self, id_: str) -> str:
        return f"{id_}-{self.columns[0].key}-0" if id_ else id_

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return what was sent: the rows of a page, or the JSON text that a program sends under the name of the field."""
        if name in data:
            return data.get(name)
        found = re.compile(rf"{re.escape(name)}-(?:{'|'.join(column.key for column in self.columns)})-(\d{{1,4}})")
        numbers = sorted({int(match[1]) for key in data if (match := found.fullmatch(key))})
        rows = [tuple(data.get(f"{name}-{column.key}-{number}", "") for column in self.columns) for number in numbers]
        all_of = getattr(data, "getlist", lambda key: [data[key]] if key in data else [])
        return Rows(rows, all_of(f"{name}-removed"), is_replaced=f"{name}-replaced" in data)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-{self.columns[0].key}-0" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        filled = [cells for cells in value or () if self.is_filled(cells)]
        rows = [*filled, *[tuple(column.empty for column in self.columns)] * _EMPTY_ROWS]
        entered = value if isinstance(value, Rows) else Rows()
        kept = format_html_join("", _KEPT, ((name, *member, _checked(member[0] in entered.removed)) for member in self.kept.items()))
        whole = format_html(_KEPT_WHOLE, name, self.whole, _checked(entered.is_replaced)) if self.whole is not None else ""
        return format_html(
            '<div class="pairs columns-{}" data-most="{}">{}{}{}{}</div>',
            len(self.columns),
            max(_MOST_ROWS, len(filled)),
            whole,
            kept,
            self._head(),
            format_html_join("", "{}", ((self._row(name, *row),) for row in enumerate(rows))),
        )

    def is_filled(self, cells: Cells) -> bool:
        """Tell whether a row differs from an empty row."""
        return any(text.strip() != column.empty for column, text in zip(self.columns, cells, strict=True))

    def _head(self) -> SafeString:
        labels = format_html_join("", "<span>{}</span>", ((column.label,) for column in self.columns))
        return format_html('<div class="pair pair-head" aria-hidden="true">{}</div>', labels)

    def _row(self, name: str, number: int, cells: Cells) -> SafeString:
        inputs = ((_cell(name, column, number, text),) for column, text in zip(self.columns, cells, strict=True))
        return format_html('<div class="pair">{}</div>', format_html_join("", "{}", inputs))


class RowsField(ShapedJSONField):
    """A map that is entered as rows. To remove a row, empty its inputs.

    Subclasses convert a stored map to rows and rows to a map. A member that no row can represent has its own line, with a checkbox that
    removes the member. Text that is sent under the name of the field is parsed as JSON.
    """

    widget: RowsWidget

    def __init__(self, *, columns: Sequence[Column], initial: Any = None, **options: Any) -> None:
        super().__init__(widget=RowsWidget(), initial=initial, **options)
        self.columns = self.widget.columns = tuple(columns)
        self._has_other_shape = initial is not None and not isinstance(initial, Mapping)
        rows, self._kept = self.rows_of(initial) if isinstance(initial, Mapping) else ([], {})
        self._rows = Rows(rows)
        self.widget.kept = {name: _cut(member) for name, member in self._kept.items()}
        self.widget.whole = _cut(initial) if self._has_other_shape else None

    def rows_of(self, stored: Mapping[str, Any]) -> tuple[list[Cells], dict[str, Any]]:
        """Return the rows of a map, and the members that no row represents."""
        raise NotImplementedError

    def map_of(self, rows: list[tuple[int, Cells]]) -> dict[str, Any]:
        """Return the map of the filled rows, each given with its number. Raises `ValidationError`, which names the row."""
        raise NotImplementedError

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, Rows):
            return super().to_python(value)
        filled = [tuple(cell.strip() for cell in cells) for cells in value if self.widget.is_filled(cells)]
        if any(_CONTROL.search(cell) for cells in filled for cell in cells):
            raise ValidationError("Remove the control characters.")
        found = self.map_of(list(enumerate(filled, 1)))
        if self._has_other_shape and not value.is_replaced:
            if found:
                raise ValidationError("Remove the stored value before you add rows.")
            return self.initial
        kept = {name: member for name, member in self._kept.items() if name not in value.removed}
        if clash := next((name for name in found if name in kept), None):
            raise ValidationError(f"“{clash[:40]}” is already stored. Remove the stored value or the row.")
        return {**found, **kept}

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data if isinstance(data, Rows) else super().bound_data(data, initial)

    def prepare_value(self, value: Any) -> Any:
        """Return the entered rows, or the rows of a map. If the entered text is not a JSON object, return the stored rows."""
        if isinstance(value, Rows):
            return value
        return Rows(self.rows_of(value)[0]) if isinstance(value, Mapping) else self._rows


def _checked(is_checked: bool) -> SafeString:  # noqa: FBT001
    return SafeString(" checked") if is_checked else SafeString("")


def is_cell(value: Any, longest: int = 255) -> bool:
    """Tell whether a text input would submit this value unchanged."""
    return isinstance(value, str) and 0 < len(value) <= longest and value == value.strip() and _CONTROL.search(value) is None


def _cell(name: str, column: Column, number: int, text: str) -> SafeString:
    if not column.choices:
        return format_html(_INPUT, name, column.key, number, text, column.longest, column.label, number + 1)
    # If a refused text is not one of the choices, the select also shows this text, because the error refers to it.
    own = () if text in dict(column.choices) else ((text, text),)
    options = format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        ((value, SafeString(" selected") if value == text else "", label) for value, label in (*column.choices, *own)),
    )
    return format_html(_SELECT, name, column.key, number, column.label, number + 1, options)


def _cut(value: Any) -> str:
    text = " ".join(pretty(value).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
