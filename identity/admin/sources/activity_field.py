"""A form field for an object with one known member: `active`. The field has three choices: "Not set", "On" and "Off"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import escape

from foundation.admin.json_fields import pretty

_ON, _OFF, _STORED = "on", "off", "stored"
_SWITCHED = {_ON: True, _OFF: False}
_LONGEST_SHOWN = 80


class ActivityField(forms.ChoiceField):
    """An object with `active`, or None. "On" and "Off" keep the other stored members. "Not set" removes these members, whose names are in
    the label of this choice.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)
        self.stored: Any = None
        self.name_stored(None)

    def name_stored(self, stored: Any) -> None:
        """Set the choices for this stored value. Name its members other than `active`."""
        self.stored = stored
        named = ", ".join(sorted(self._others))
        unusual = [] if self._is_usual else [(_STORED, f"As stored: {_cut(stored)}")]
        offered = [*unusual, ("", f"Not set (removes {named})" if named else "Not set"), (_ON, "On"), (_OFF, "Off")]
        self.choices = offered
        self._offered = frozenset(choice for choice, _label in offered)
        if named:
            # Templates insert help texts without escaping, so the names must be escaped here.
            self.help_text = f"{self.help_text} Also stored and kept: {escape(named)}."

    @property
    def _others(self) -> dict[str, Any]:
        return {name: value for name, value in self.stored.items() if name != "active"} if isinstance(self.stored, Mapping) else {}

    @property
    def _is_usual(self) -> bool:
        return self.stored is None or (isinstance(self.stored, Mapping) and isinstance(self.stored.get("active"), bool))

    def prepare_value(self, value: Any) -> Any:
        """Return the choice for a stored value. A value that is already a choice, as in a submitted form, is returned unchanged."""
        if isinstance(value, str) and value in self._offered:
            return value
        if not self._is_usual:
            return _STORED
        active = value.get("active") if isinstance(value, Mapping) else None
        return {True: _ON, False: _OFF}.get(active, "") if isinstance(active, bool) else ""

    def clean(self, value: Any) -> Any:
        if value is None:
            # A page always sends the choice. A program can omit the choice; the stored value is then kept.
            return self.stored
        choice = super().clean(value)
        if choice == _STORED:
            return self.stored
        return {**self._others, "active": _SWITCHED[choice]} if choice else None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != initial)
        except ValidationError:
            return True


def shown_activity(stored: Any) -> str:
    """Return the stored value as a word, for accounts that may not change it."""
    if isinstance(stored, Mapping) and isinstance(stored.get("active"), bool):
        return "On" if stored["active"] else "Off"
    return "Not set" if stored is None else f"As stored: {_cut(stored)}"


def _cut(value: Any) -> str:
    text = " ".join(pretty(value).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
