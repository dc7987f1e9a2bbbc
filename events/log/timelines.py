"""Raises the epoch of a log before its next position is assigned, if the promotion of a standby may have lost numbered events.

Each log stores the timeline of PostgreSQL's WAL on which it was last numbered. A promotion, and a recovery to a point in time, begin
a new timeline.

1. If every numbering on the earlier timelines waited for a synchronous standby, a promotion loses no numbered event, and cursors stay
   valid.
2. Otherwise, and after each recovery to a chosen point, numbered events may be lost, and numbering would assign their positions again. A
   client with an earlier cursor would miss the new events at these positions. So the epoch is raised, and requests with earlier cursors
   get 410.

Decision: docs/adr/0124.

If the database is now in another cluster (a restored dump, an upgrade), no epoch is raised here: `database_identity` reports the change to
the operator.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege

from events.log.epochs import NEXT_EPOCH
from events.log.server_identity import Identity, identity_of

logger = logging.getLogger(__name__)

# Makes a commit wait for the disk of the server and of its synchronous standby, if there is one. Keeps a stronger setting.
DURABLE_COMMIT = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
"""
# `remote_write` and weaker settings acknowledge a commit that no standby has on its disk.
IS_REPLICATED = "(current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') IN ('on', 'remote_apply'))"
# A recovery to a chosen point loses later commits, even those that had reached a standby.
_IS_RECOVERED_TO_A_POINT = """EXISTS (
    SELECT FROM pg_settings WHERE name LIKE 'recovery\\_target%%' AND setting <> ''
    AND name NOT IN ('recovery_target_action', 'recovery_target_inclusive', 'recovery_target_timeline')
)"""
_NOTE = f"""
INSERT INTO events_timeline (system_identifier, timeline, is_replicated)
VALUES (%(system)s, %(timeline)s, {IS_REPLICATED})
ON CONFLICT (system_identifier, timeline) DO UPDATE SET is_replicated = EXCLUDED.is_replicated
WHERE events_timeline.is_replicated <> EXCLUDED.is_replicated
"""  # noqa: S608  (constants)
_STATE = f"""
SELECT is_replicated, {_IS_RECOVERED_TO_A_POINT}
FROM events_timeline WHERE system_identifier = %(system)s AND timeline = %(timeline)s
"""  # noqa: S608  (constants)
_LOST = """
SELECT count(*) FILTER (WHERE is_replicated) < %(timeline)s - %(earlier)s, count(*) FILTER (WHERE timeline = %(earlier)s) > 0
FROM events_timeline WHERE system_identifier = %(system)s AND timeline >= %(earlier)s AND timeline < %(timeline)s
"""
_ADOPT = "UPDATE events_head SET timeline = %(timeline)s WHERE tenant_id = %(tenant)s"
_RAISE = f"UPDATE events_head SET timeline = %(timeline)s, epoch = {NEXT_EPOCH} WHERE tenant_id = %(tenant)s"  # noqa: S608  (a constant)
_CONFIRM = """
UPDATE events_head SET timeline = %(timeline)s WHERE timeline IS DISTINCT FROM %(timeline)s
"""


@dataclass
class Fence:
    """The identity and timeline of the server of a database connection. Both stay the same while the connection is open."""

    identity: Identity
    is_replicated: bool
    is_recovered_to_a_point: bool


# A connection to a standby has no fence, because the identity of a standby cannot be read, and a standby accepts no numbering.
_fences: weakref.WeakKeyDictionary[psycopg.Connection[Any], Fence | None] = weakref.WeakKeyDictionary()


def fence_of(database: psycopg.Connection[Any]) -> Fence | None:
    """Return the fence of the connection, and store its timeline on first use. Return None if the role may not read the server's identity.

    Call this function outside a transaction. Raises `psycopg.Error`, for example on a standby.
    """
    if database not in _fences:
        _fences[database] = _noted(database)
    return _fences[database]


def hold(cursor: psycopg.Cursor[Any], fence: Fence, tenant_id: str, earlier: int | None) -> None:
    """Raise the epoch of the log if events that were numbered on the timeline `earlier` may be lost; store the present timeline.

    Runs in the numbering transaction, after the lock on the head row and before the first position.
    """
    values = {"tenant": tenant_id, "system": fence.identity.system_identifier, "timeline": fence.identity.timeline, "earlier": earlier}
    is_raised = earlier is not None and _may_be_lost(cursor, fence, values)
    cursor.execute(_RAISE if is_raised else _ADOPT, values)
    if is_raised:
        logger.critical(
            "the log of %s begins a new epoch: after the promotion from timeline %s to %s, numbered events may be lost",
            tenant_id,
            earlier,
            fence.identity.timeline,
        )


def follow_replication(database: psycopg.Connection[Any], fence: Fence) -> None:
    """Store whether commits wait for a synchronous standby."""
    fence.is_replicated, _ = _note(database, fence.identity)


def confirm(database: psycopg.Connection[Any], identity: Identity) -> int:
    """Store the present timeline for all logs, and begin no new epoch: an operator knows that nothing was lost.

    Return the number of changed logs.
    """
    with database.transaction():
        return database.execute(_CONFIRM, {"timeline": identity.timeline}).rowcount


def _noted(database: psycopg.Connection[Any]) -> Fence | None:
    try:
        identity = identity_of(database)
    except InsufficientPrivilege:
        logger.warning("numbering cannot detect a failover: grant EXECUTE on pg_control_system() to the role of the service")
        return None
    return Fence(identity, *_note(database, identity))


def _note(database: psycopg.Connection[Any], identity: Identity) -> tuple[bool, bool]:
    """Store whether commits wait for a standby.

    Return two facts: whether they wait, and whether the server was recovered to a chosen point in time.
    """
    with database.transaction(), database.cursor() as cursor:
        # The commit of this row waits for the standby like the commits of numbering. If the row survives a failover, the numbered
        # events survive, too.
        cursor.execute(DURABLE_COMMIT)
        cursor.execute(_NOTE, _values(identity))
        found = cursor.execute(_STATE, _values(identity)).fetchone()
    is_stored, is_recovered = found or (False, False)
    return bool(is_stored), bool(is_recovered)


def _may_be_lost(cursor: psycopg.Cursor[Any], fence: Fence, values: dict[str, Any]) -> bool:
    is_unreplicated, is_known = cursor.execute(_LOST, values).fetchone() or (True, True)
    # If the earlier timeline has no row, it belongs to another cluster. No epoch is raised for a change of the cluster.
    return bool(is_known and (is_unreplicated or fence.is_recovered_to_a_point))


def _values(identity: Identity) -> dict[str, Any]:
    return {"system": identity.system_identifier, "timeline": identity.timeline}
