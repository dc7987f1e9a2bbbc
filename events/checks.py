"""System checks of the event stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connection

from events import tripwire


@register(Tags.database)
def check_tripwire(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report recorded tables whose triggers are missing, disabled or not those of the catalogue.

    A warning and not an error, since `migrate`, which mends it, refuses to run on errors; production checks with
    `check --database default --fail-level WARNING`.
    """
    if not databases or "default" not in databases or "events_mark" not in connection.introspection.table_names():
        return []
    found = tripwire.installed()
    return [
        Warning(
            f"The trigger {trigger.name} on {trigger.table} is missing or outdated: changes around the signals would be lost.",
            hint="Run `manage.py migrate`, which installs it.",
            id="events.W001",
        )
        for trigger in tripwire.expected_triggers()
        if found.get((trigger.table, trigger.name)) != trigger.fingerprint
    ]
