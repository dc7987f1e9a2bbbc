"""Form fields for JSON. The JSON is indented, must have the expected shape, and is refused with a message if it is invalid."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput


class ShapedJSONField(forms.JSONField):
    """A form field for a JSON object or list; `shape` is `dict` or `list`.

    Empty input means an empty object or list, or null if `is_nullable`.
    """

    def __init__(self, *, shape: type[dict[str, Any]] | type[list[Any]] = dict, is_nullable: bool = False, **options: Any) -> None:
        self.shape = shape
        self.is_nullable = is_nullable
        options.setdefault("required", False)
        options.setdefault("widget", forms.Textarea(attrs={"rows": 5, "cols": 60, "spellcheck": "false", "class": "json-input"}))
        super().__init__(**options)

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
        except (RecursionError, ValueError) as error:
            # If the nesting is very deep or a number has thousands of digits, Python's parser raises another error than for invalid JSON.
            raise ValidationError("This JSON is nested too deeply, or has a number with too many digits.", code="invalid") from error
        if found is None:
            return None if self.is_nullable else self.shape()
        if not isinstance(found, self.shape):
            expected = "object: names and values in braces" if self.shape is dict else "list: values in square brackets"
            raise ValidationError(f"Enter a JSON {expected}.", code="invalid")
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return InvalidJSONInput(data)

    def prepare_value(self, value: Any) -> Any:
        """Return text for the widget; typed text is kept unchanged."""
        if isinstance(value, (dict, list)):
            return pretty(value) if value else ""
        if value is None:
            return ""
        return super().prepare_value(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != (initial if initial is not None or self.is_nullable else self.shape()))
        except ValidationError:
            return True


def pretty(value: Any) -> str:
    """Return indented JSON in the given order, with non-ASCII letters unescaped."""
    return json.dumps(value, indent=2, ensure_ascii=False)
