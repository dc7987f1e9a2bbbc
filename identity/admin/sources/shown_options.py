"""Values of a connection as text, for accounts that may not change the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin

from identity.admin.connection_options import is_sealed, option_at, other_options
from identity.admin.sources.activity_field import shown_activity
from identity.admin.sources.other_options import flattened
from identity.models import Connection
from identity.options.guide_fields import Guide, OptionField

_NOT_SET = "Not set"
Shown = Callable[[Connection], str]


def shown_option(option: OptionField) -> Shown:
    """Return a function for a read-only line of the page. The line shows the value of an option, or for a secret only whether it is set."""

    @admin.display(description=option.label)
    def shown(row: Connection) -> str:
        if is_sealed(option, row):
            return "Set"
        return _text(option, option_at(row.shown_options, option.name))

    return shown


def label_of_activity(name: str) -> str:
    """Return the label of an object that the service only stores. The label says that logins at this service do not use the object."""
    return f"{name.replace('_', ' ').capitalize()} (for other programs only)"


def shown_activity_of(name: str) -> Shown:
    """Return a function for a read-only line of the page. The line shows on, off or not set."""

    @admin.display(description=label_of_activity(name))
    def shown(row: Connection) -> str:
        return shown_activity(getattr(row, name))

    return shown


def shown_others(guide: Guide | None) -> Shown:
    """Return a function for a read-only line of the page. The line shows the options that have no line of their own."""

    @admin.display(description="Options")
    def shown(row: Connection) -> str:
        return _listed(flattened(row.option_schema, other_options(guide, row))) or _NOT_SET

    return shown


def _text(option: OptionField, value: Any) -> str:
    if option.kind == "switch":
        return "On" if (option.default if value is None else value) else "Off"
    if value in (None, "", [], {}):
        return _NOT_SET
    if option.kind == "choice":
        return dict(option.choices).get(str(value), str(value))
    return _listed(value)


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_listed(member)}" for name, member in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
