"""Settings of each database session, such as its time limits, sent in a statement after the connection is open.

As startup options, the settings would not pass a pooler: PgBouncer refuses the parameter `options`, or ignores it silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection

# The name of the settings in the OPTIONS of a database.
SESSION_SETTINGS = "session_settings"


def session_settings() -> dict[str, str]:
    """Return the settings of every session on Django's default database."""
    return dict(connection.settings_dict["OPTIONS"].get(SESSION_SETTINGS, {}))


def set_statement(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a statement that sets these values for the whole session, and the parameters of the statement."""
    calls = ", ".join(["set_config(%s, %s, false)"] * len(values))
    return f"SELECT {calls}", [str(part) for item in values.items() for part in item]
