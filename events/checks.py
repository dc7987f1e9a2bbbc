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
from foundation.database.pooler import TransactionPooling, refuse_transaction_pooling


@register(Tags.database)
def check_tripwire(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report recorded tables whose triggers are missing, disabled or different from the catalogue.

    This is a warning, because `migrate`, which installs the triggers, refuses to run on errors. Production runs `check
    --database default --fail-level WARNING`.
    """
    if not databases or "default" not in databases or "events_mark" not in connection.introspection.table_names():
        return []
    found = tripwire.installed()
    return [
        Warning(
            f"The trigger {trigger.name} on {trigger.table} is missing or outdated: "
            "changes that bypass Django's signals would record no event.",
            hint="Run `manage.py migrate`, which installs the trigger.",
            id="events.W001",
        )
        for trigger in tripwire.expected_triggers()
        if found.get((trigger.table, trigger.name)) != trigger.fingerprint
    ]


@register(Tags.database)
def check_spelling(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report an attribute prefix or a namespace that differs from the prefix or namespace in stored events.

    This is an error, so `migrate`, which runs at the start of every new version, refuses to continue. The names of envelope fields must
    not change: a client that resumes after a change would not recognize the new names.
    """
    if not databases or "default" not in databases or "events_event" not in connection.introspection.table_names():
        return []
    newest = Event.objects.order_by("-id").values_list("body", flat=True).first()
    wanted = (f'"{settings.EVENT_ATTRIBUTE_PREFIX}tenant":', f'"source":"urn:{settings.EVENT_SOURCE_NAMESPACE}:')
    if newest is None or all(part.encode() in bytes(newest) for part in wanted):
        return []
    return [
        Error(
            "EVENT_ATTRIBUTE_PREFIX or EVENT_SOURCE_NAMESPACE differs from the value in stored events.",
            hint="Restore the earlier values of both settings; new values require an empty log.",
            id="events.E002",
        )
    ]


@register(Tags.database)
def check_database_identity(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report a database whose identity differs from the stored identity, until `manage.py events restored` confirms this database.

    This is a warning, because a planned switchover loses nothing, and an unattended failover must not wait for an operator.
    """
    if not databases or "default" not in databases or "events_databaseidentity" not in connection.introspection.table_names():
        return []
    try:
        with open_connection() as database:
            difference = database_identity.compare(database)
    except psycopg.Error:
        return []
    return [] if difference is None else [Warning(str(difference), hint=database_identity.ADVICE, id="events.W003")]


@register(Tags.database)
def check_pooler(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report a pooler in transaction mode.

    This is an error, so `migrate` refuses to run: migrations, too, need one server connection from start to end.
    """
    if not databases or "default" not in databases:
        return []
    try:
        refuse_transaction_pooling()
    except TransactionPooling as refusal:
        return [Error(str(refusal), id="events.E003")]
    return []
