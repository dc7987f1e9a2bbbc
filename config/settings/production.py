"""Settings of a production process: all values come from the environment. The process does not start unless all four key lists are set."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from config.settings import base
from config.settings.base import *  # noqa: F403  (a settings module consists of its names)

for _name in ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS"):
    if not getattr(base, _name):
        raise ImproperlyConfigured(f"{_name} is not set: give at least one <id>:<32 or more random characters>.")
