"""Checks that the service uses the database in which the logs were written. Decision: docs/adr/0043.

Every new cluster has another system identifier in PostgreSQL. A cluster in which a dump was restored is new, too. The timeline of a cluster
changes with every promotion and every recovery to a point in time. A change of one of these two values does not prove that events were
lost. So the service only reports a difference, until an operator confirms the database with `manage.py events restored`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import psycopg

from events.log.numbering import open_connection
from events.log.server_identity import Identity, identity_of

logger = logging.getLogger(__name__)

_STATEMENT_TIMEOUT_MS = 3000
_STORED = "SELECT system_identifier, timeline FROM events_databaseidentity"
_NOTE_FIRST = """
INSERT INTO events_databaseidentity (id, system_identifier, timeline) VALUES (1, %s, %s) ON CONFLICT (id) DO NOTHING
"""
_NOTE = """
INSERT INTO events_databaseidentity (id, system_identifier, timeline) VALUES (1, %s, %s)
ON CONFLICT (id) DO UPDATE SET system_identifier = EXCLUDED.system_identifier, timeline = EXCLUDED.timeline, noted_at = clock_timestamp()
"""


@dataclass(frozen=True)
class Difference:
    """The identity of the database differs from the stored identity."""

    noted: Identity
    now: Identity

    def __str__(self) -> str:
        if self.noted.system_identifier != self.now.system_identifier:
            what = "another database cluster, as after restoring a dump, an upgrade of PostgreSQL or a move"
        else:
            what = "another timeline, as after the promotion of a standby or a recovery to a point in time"
        return f"This is {what} (noted: {self.noted}; now: {self.now})."


ADVICE = (
    "If events may have been lost, run `manage.py events restored --all`: then earlier cursors are refused, and clients "
    "read all resources again. If nothing was lost, run `manage.py events restored --nothing-lost`."
)


def compare(database: psycopg.Connection[Any]) -> Difference | None:
    """Compare the database with the stored identity; return None if they match or no identity is stored. Raises `psycopg.Error`."""
    now = identity_of(database)
    stored = database.execute(_STORED).fetchone()
    noted = now if stored is None else Identity(*stored)
    return None if noted == now else Difference(noted, now)


def note_first(database: psycopg.Connection[Any]) -> None:
    """Store the identity of the database if no identity is stored. Raises `psycopg.Error`."""
    now = identity_of(database)
    database.execute(_NOTE_FIRST, [now.system_identifier, now.timeline])


def note(database: psycopg.Connection[Any]) -> Identity:
    """Replace the stored identity by the identity of the present database, and return the new identity. Raises `psycopg.Error`."""
    now = identity_of(database)
    database.execute(_NOTE, [now.system_identifier, now.timeline])
    return now


def compare_at_start() -> Difference | None:
    """Compare on a separate connection, and log an alarm on a difference. Never raises, because the start must not depend on this check."""
    try:
        with open_connection() as database, database.transaction():
            # Set the timeout for this transaction only: a pooler could give the connection with this setting to another client.
            database.execute(f"SET LOCAL statement_timeout = {_STATEMENT_TIMEOUT_MS}")
            note_first(database)
            difference = compare(database)
    except psycopg.errors.InsufficientPrivilege as error:
        logger.warning(
            "whether this is still the same database was not checked: %s. Grant EXECUTE on pg_control_system() to check it.",
            str(error).splitlines()[0],
        )
    except (psycopg.Error, OSError) as error:
        logger.warning("whether this is still the same database was not checked: %s", type(error).__name__)
    else:
        if difference is not None:
            logger.critical("%s %s", difference, ADVICE)
        return difference
    return None
