"""Form fields for lists of texts, one per line."""

from __future__ import annotations

from typing import Any

from django import forms


class LinesField(forms.CharField):
    """A list of texts, one per line; empty and repeated lines are dropped."""

    def __init__(self, *, rows: int = 3, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("widget", forms.Textarea(attrs={"rows": rows, "cols": 60, "spellcheck": "false", "class": "lines-input"}))
        super().__init__(**options)

    def to_python(self, value: Any) -> Any:
        text = value if isinstance(value, str) else "\n".join(value or [])
        return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else "\n".join(value or [])

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(data) != self.to_python(initial))

    def run_validators(self, value: Any) -> None:
        """Do nothing: the lines are validated where the list is used."""
