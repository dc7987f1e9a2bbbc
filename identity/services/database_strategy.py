"""Refuses to start if the setting `DATABASE_STRATEGY` differs from the value with which the data was written.

The strategy is stored in connections and is the prefix of user ids, so with another value users could not log in.
"""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.db.models import QuerySet

from identity.models import Connection
from identity.models.connections import known_strategies


class StrategyChanged(ImproperlyConfigured):
    """The data was written with another database strategy."""


def written_strategy(connections: QuerySet[Connection]) -> str:
    """Return the database strategy of these connections if it differs from the setting; empty if both are equal."""
    # The service writes `passwordPolicy` into every new database connection, so this option shows that a connection is a database.
    others = connections.exclude(strategy__in=known_strategies()).filter(options__has_key="passwordPolicy")
    return others.values_list("strategy", flat=True).first() or ""


def refuse_changed_strategy() -> None:
    """Raise `StrategyChanged` with a sentence that names both values. Does nothing if the database does not answer."""
    if not settings.CHECK_DATABASE_STRATEGY:
        return
    try:
        written = written_strategy(Connection.all_tenants.all())
    except DatabaseError:
        return
    if written:
        raise StrategyChanged(
            f"DATABASE_STRATEGY is {settings.DATABASE_STRATEGY!r}, but the data was written with {written!r}: "
            f"set DATABASE_STRATEGY={written} again. The setting cannot be changed while connections exist."
        )
