"""The identity of a PostgreSQL server: numbers that identify its data and its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

# The timeline of present writes. `pg_control_checkpoint()` shows the timeline of the last checkpoint, which is outdated for a while
# after a promotion. Processes often restart at that time.
_NOW = """
SELECT system_identifier::text, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint FROM pg_control_system()
"""


@dataclass(frozen=True)
class Identity:
    """The identity of a database, as its server reports it."""

    system_identifier: str
    timeline: int

    def __str__(self) -> str:
        return f"system identifier {self.system_identifier}, timeline {self.timeline}"


def identity_of(database: psycopg.Connection[Any]) -> Identity:
    """Query the server. Raises `psycopg.Error` if the server refuses, for example on a standby or for a role without the privilege."""
    row = database.execute(_NOW).fetchone()
    if row is None:
        raise psycopg.DataError("the server did not name its database")
    return Identity(*row)
