"""The labels of the values that a form field offers."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet


def labels_of(field: forms.Field, values: list[Any]) -> dict[str, str]:
    """Return labels by value: the labels of the chosen rows or, if the field has fixed choices, the labels of all choices."""
    if isinstance(field, forms.ModelChoiceField):
        key = field.to_field_name or "pk"
        offered: QuerySet[Any] = field.queryset  # type: ignore[assignment]  # django-stubs: it may be missing
        rows = offered.filter(**{f"{key}__in": values})
        return {str(field.prepare_value(row)): field.label_from_instance(row) for row in rows}
    found: dict[str, str] = {}
    for key, label in getattr(field, "choices", None) or ():
        group = label if isinstance(label, list | tuple) else [(key, label)]
        found |= {str(one): str(text) for one, text in group}
    return found
