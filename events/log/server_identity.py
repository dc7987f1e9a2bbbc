"""The identity of a PostgreSQL server: numbers that identify its data and its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

# Reads the timeline of the WAL that is written now. `pg_control_checkpoint()` would return the timeline of the last checkpoint, which is
# outdated for a while after a promotion, when processes often restart.
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
    """Return the identity of the server. Raises `psycopg.Error` on a standby, and if the role lacks the privilege."""
    row = database.execute(_NOW).fetchone()
    if row is None:
        raise psycopg.DataError("the server did not return its identity")
    return Identity(*row)
