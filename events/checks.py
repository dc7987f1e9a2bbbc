"""System checks of the event stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from events.log import database_identity
from events.log.numbering import open_connection
from events.models import Event
from events.record import tripwire


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


@register(Tags.database)
def check_spelling(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report a prefix or namespace other than the one that stored events are spelled with.

    An error: `migrate`, and with it every start of a new version, refuses to go on. One log has one spelling, because
    a client that resumes would not know the fields after the change.
    """
    if not databases or "default" not in databases or "events_event" not in connection.introspection.table_names():
        return []
    newest = Event.objects.order_by("-id").values_list("body", flat=True).first()
    wanted = (f'"{settings.EVENT_ATTRIBUTE_PREFIX}tenant":', f'"source":"urn:{settings.EVENT_SOURCE_NAMESPACE}:')
    if newest is None or all(part.encode() in bytes(newest) for part in wanted):
        return []
    return [
        Error(
            "EVENT_ATTRIBUTE_PREFIX or EVENT_SOURCE_NAMESPACE differs from what the stored events are spelled with.",
            hint="Set both back; another spelling needs an empty log.",
            id="events.E002",
        )
    ]


@register(Tags.database)
def check_database_identity(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report a database that is not the one noted, until `manage.py events restored` has answered it.

    A warning: after a planned switchover nothing is lost, and a failover at night must not wait for a person.
    """
    if not databases or "default" not in databases or "events_databaseidentity" not in connection.introspection.table_names():
        return []
    try:
        with open_connection() as database:
            difference = database_identity.compare(database)
    except psycopg.Error:
        return []
    return [] if difference is None else [Warning(str(difference), hint=database_identity.ADVICE, id="events.W003")]
