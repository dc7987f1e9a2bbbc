"""The form of a row for staff who may see the row but may not change it: the same fields, with their values as text.

Django reads the values of such a page from the columns of the row. A form whose fields are not columns would show no values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.contrib.admin.helpers import AdminForm, AdminReadonlyField, Fieldline, Fieldset
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from foundation.admin.choice_labels import labels_of
from foundation.admin.json_fields import pretty

NEVER_SHOWN = "Never shown"
_BREAK = SafeString("<br>")


class ReadableForm(AdminForm):
    """Django's form of the admin. Shows each field of the form as text, also fields that are not columns of the row."""

    @classmethod
    def of(cls, form: AdminForm) -> ReadableForm:
        """Return a readable form with the fields of `form`."""
        return cls(form.form, form.fieldsets, {}, form.readonly_fields, model_admin=form.model_admin)

    def __iter__(self) -> Iterator[Fieldset]:
        for name, options in self.fieldsets:
            shown: Any = options
            yield _Fieldset(self.form, name, readonly_fields=self.readonly_fields, model_admin=self.model_admin, **shown)


class _Fieldset(Fieldset):
    fields: Any

    def __iter__(self) -> Iterator[Fieldline]:
        for field in self.fields:
            yield _Fieldline(self.form, field, self.readonly_fields, model_admin=self.model_admin)


class _Fieldline(Fieldline):
    def __iter__(self) -> Iterator[Any]:
        for number, field in enumerate(self.fields):
            yield _Value(self.form, field, is_first=number == 0, model_admin=self.model_admin)


class _Value(AdminReadonlyField):
    def __init__(self, form: Any, field: Any, *, is_first: bool, model_admin: Any) -> None:
        super().__init__(form, field, is_first, model_admin)
        self._own = form[field] if isinstance(field, str) and field in form.fields else None
        if self._own is not None and self._own.help_text:
            self.field["help_text"] = self._own.help_text

    def contents(self) -> SafeString:
        if self._own is None:
            return super().contents()
        return conditional_escape(value_in_words(self._own) or self.empty_value_display)


def value_in_words(bound: forms.BoundField) -> str:
    """Return the initial value of a field as a page without inputs shows it; empty if there is no value."""
    value = bound.initial
    if isinstance(bound.field.widget, forms.PasswordInput):
        return NEVER_SHOWN
    if isinstance(bound.field, forms.BooleanField):
        return "Yes" if value else "No"
    if value in (None, "", [], {}, ()):
        return labels_of(bound.field, []).get("", "")
    values = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, dict) and not any(isinstance(one, list | dict) for one in value.values()):
        return _lines(f"{name}: {text}" for name, text in value.items())
    if isinstance(value, dict) or any(isinstance(one, list | dict) for one in values):
        return format_html("<pre>{}</pre>", pretty(value))
    labels = labels_of(bound.field, values)
    return _lines(labels.get(str(one), one) for one in values)


def _lines(texts: Iterable[Any]) -> SafeString:
    return format_html_join(_BREAK, "{}", ((text,) for text in texts))
