"""Reads on a replica of the database, and says how old the data of the replica is.

Only for lists of the admin and for exports. Decision: docs/adr/0131. A replica lags behind the primary by an unknown time. Streams,
cursors, numbering, admission and deliveries never read on the replica; `tests/architecture/test_replica.py` lists the modules that may read
from a replica.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

logger = logging.getLogger(__name__)

ALIAS = "replica"
# After a failure, requests do not wait for the replica during this time.
_PAUSE_SECONDS = 10.0
# The insert position covers commits that are visible before they are on the disk (`synchronous_commit = off`).
_POSITION = "SELECT pg_current_wal_insert_lsn()::text, clock_timestamp()"
# A replica that was promoted has a history of its own, so only a standby is used.
_STATE = """
SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false), pg_last_xact_replay_timestamp()
"""


@dataclass(frozen=True)
class Source:
    """A database to read from. A replica contains everything that was committed before `as_of`. For the primary, `as_of` is None."""

    alias: str
    as_of: datetime | None = None
    age_seconds: float = 0.0


PRIMARY = Source(DEFAULT_DB_ALIAS)


class _Failure:
    """The time of the last failure of this process."""

    at: float | None = None

    @classmethod
    def is_recent(cls) -> bool:
        return cls.at is not None and time.monotonic() - cls.at < _PAUSE_SECONDS


def reading_source(*, after: datetime | None = None) -> Source:
    """Return the replica if it is available, recent enough, and contains everything committed before `after`; otherwise the primary."""
    if ALIAS not in connections.settings or _Failure.is_recent():
        return PRIMARY
    position, now = current_position()
    state = _state_at(position)
    if state is None:
        return PRIMARY
    is_complete, replayed_at = state
    as_of = now if is_complete else replayed_at
    if as_of is None or (now - as_of) > timedelta(seconds=settings.REPLICA_MAX_LAG_SECONDS) or (after is not None and as_of <= after):
        return PRIMARY
    return Source(ALIAS, as_of, max(0.0, (now - as_of).total_seconds()))


def alias_that_contains(position: str) -> str:
    """Return the alias of the replica if it has replayed this position of the write-ahead log; otherwise the alias of the primary."""
    if not position or ALIAS not in connections.settings or _Failure.is_recent():
        return DEFAULT_DB_ALIAS
    state = _state_at(position)
    return ALIAS if state is not None and state[0] else DEFAULT_DB_ALIAS


def current_position() -> tuple[str, datetime]:
    """Return the present position of the primary's write-ahead log, and the time of the query."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_POSITION)
        position, now = cursor.fetchone()
    return position, now.astimezone(UTC)


def has_replica() -> bool:
    """Tell whether a replica is configured."""
    return ALIAS in connections.settings


def give_up(error: DatabaseError) -> None:
    """Use the primary for a while, because the replica failed."""
    _Failure.at = time.monotonic()
    logger.warning("the replica failed; lists and exports use the primary for %s s: %s", _PAUSE_SECONDS, str(error).strip().split("\n")[0])
    connections[ALIAS].close()


def _state_at(position: str) -> tuple[bool, datetime | None] | None:
    """Return whether the replica has replayed this position, and the time of the last replayed commit.

    None if the server is not a standby, or does not answer.
    """
    try:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_STATE, [position])
            row: Any = cursor.fetchone()
    except DatabaseError as error:
        give_up(error)
        return None
    is_standby, is_complete, replayed_at = row
    return (is_complete, replayed_at) if is_standby else None
