"""Fields for a date and a time."""

from __future__ import annotations

from django import forms


class Moment(forms.DateTimeInput):
    """The browser's date and time field, with seconds."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(attrs={"step": "1"}, format="%Y-%m-%dT%H:%M:%S")
