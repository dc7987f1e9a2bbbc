"""Reads the log: a page after a cursor, the position of a time, and the bounds of each tenant's log.

Every result comes from one statement and so from one snapshot, in which the bounds and the rows agree. A caller uses a connection of the
small pool for one statement only, and releases the connection before it writes to a client.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from django.db import connection as django_connection

from events.log.cursor import Cursor
from events.log.epochs import NEXT_EPOCH
from foundation.database.prepared_statements import LinePool, Row, Statement
from foundation.database.session_settings import session_settings, set_statement
from foundation.memory.batching import Gathering

logger = logging.getLogger(__name__)

READ_HANDLES = 8
_HANDLE_TIMEOUT_SECONDS = 5.0
_STATEMENT_TIMEOUT_MS = 5000

_BOUNDS_COLUMNS = "h.epoch, h.position, h.floor, h.floor_recorded_at, h.stream_id"
_BOUNDS = Statement("log_bounds", ("text[]",), f"SELECT h.tenant_id, {_BOUNDS_COLUMNS} FROM events_head h WHERE h.tenant_id = ANY($1)")
# This SQL reads the entries after `asked.after` of each requested log. The running sum of `octet_length` limits the bytes of a page;
# `octet_length` does not decompress a body.
_FOLLOWING = """
JOIN events_head h ON h.tenant_id = asked.tenant_id
LEFT JOIN LATERAL (
    SELECT l.position, l.recorded_at, e.type, e.body,
           sum(octet_length(e.body)) OVER (ORDER BY l.position ROWS UNBOUNDED PRECEDING) - octet_length(e.body) AS bytes_before
    FROM (
        SELECT event_id, position, recorded_at FROM events_logentry
        WHERE tenant_id = h.tenant_id AND position > asked.after AND position <= h.position ORDER BY position LIMIT $3
    ) l JOIN events_event e ON e.id = l.event_id
) p ON p.bytes_before < $4
"""
_PAGE = Statement(
    "log_page",
    ("text", "bigint", "bigint", "bigint"),
    f"""
SELECT {_BOUNDS_COLUMNS}, p.position, p.recorded_at, p.type, p.body
FROM (SELECT $1 AS tenant_id, $2 AS after) AS asked {_FOLLOWING} ORDER BY p.position
""",
)
# `_PAGE` for several tenants at once. Each row has the index of its request.
_PAGES = Statement(
    "log_pages",
    ("text[]", "bigint[]", "bigint", "bigint"),
    f"""
SELECT asked.number::int4, {_BOUNDS_COLUMNS}, p.position, p.recorded_at, p.type, p.body
FROM unnest($1, $2) WITH ORDINALITY AS asked (tenant_id, after, number) {_FOLLOWING}
ORDER BY asked.number, p.position
""",
)
_PLACE_OF = f"""
SELECT {_BOUNDS_COLUMNS}, (
    SELECT l.position FROM events_logentry l WHERE l.tenant_id = %(tenant)s AND l.recorded_at >= %(moment)s
    ORDER BY l.recorded_at, l.position LIMIT 1
) FROM events_head h WHERE h.tenant_id = %(tenant)s
"""
_EARLIEST = f"""
SELECT {_BOUNDS_COLUMNS}, (
    SELECT l.recorded_at FROM events_logentry l WHERE l.tenant_id = %(tenant)s AND l.position > h.floor AND l.position <= h.position
    ORDER BY l.position LIMIT 1
) FROM events_head h WHERE h.tenant_id = %(tenant)s
"""
_HEADS = "SELECT tenant_id, epoch, position FROM events_head WHERE tenant_id = ANY(%(tenants)s)"
# If many readers find that a log was restored, the conditions on epoch and position let only one of them raise the epoch.
_RAISE_EPOCH = f"""
UPDATE events_head SET epoch = {NEXT_EPOCH} WHERE tenant_id = %(tenant)s AND epoch = %(epoch)s AND position < %(position)s
"""


class LogError(Exception):
    """The log could not be read."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class CursorExpired(LogError):
    """The cursor points to data that is no longer available in the stream."""


class NoLog(LogError):
    """The tenant has no log: it was deleted."""


class LogHasHole(LogError):
    """Positions between floor and head are missing. `after` is the last missing position."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a tenant's log: its epoch, its last position, and the last pruned position."""

    epoch: int
    head: int
    floor: int
    floor_recorded_at: datetime | None
    stream_id: str

    @property
    def end(self) -> Cursor:
        """The cursor after the last event."""
        return Cursor(self.epoch, self.head)

    def require(self, cursor: Cursor) -> None:
        """Raise `CursorExpired` for a cursor of another epoch, below the floor or above the head. Compares positions, not times."""
        if cursor.epoch != self.epoch or not self.floor <= cursor.position <= self.head:
            raise CursorExpired

    def refutes(self, cursor: Cursor) -> bool:
        """Tell whether the cursor has the present epoch and is above the head: then the database was restored to an earlier state."""
        return cursor.epoch == self.epoch and cursor.position > self.head


class LoggedEvent(NamedTuple):
    """One event of the log with its stored bytes."""

    position: int
    recorded_at: datetime
    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """The events directly after a cursor, without a missing position, and the bounds of the log from the same database snapshot."""

    bounds: Bounds
    events: Sequence[LoggedEvent]


class LogReader:
    """Reads the logs of all tenants through one small pool. Database errors pass through as `psycopg.Error`."""

    def __init__(self, pool: LinePool) -> None:
        self._pool = pool
        self._bounds: Gathering[str, Bounds | None] = Gathering(self._bounds_of)

    async def bounds(self, tenant_id: str) -> Bounds:
        """Return the bounds of the tenant's log; concurrent calls share a statement. Raises `NoLog`."""
        found = await self._bounds.ask(tenant_id)
        if found is None:
            raise NoLog
        return found

    async def page(self, tenant_id: str, cursor: Cursor, *, max_events: int, max_bytes: int) -> Page:
        """Return the events directly after the cursor, up to `max_events` and `max_bytes`, but at least one event if any exists.

        Raises `CursorExpired` and `NoLog`. If positions are missing directly after the cursor, raises `LogHasHole` and skips no position;
        if they are missing later, returns the events before the hole.
        """
        return _page(await self._pool.rows(_PAGE, tenant_id, cursor.position, max_events, max_bytes), cursor)

    async def pages(self, places: Sequence[tuple[str, Cursor]], *, max_events: int, max_bytes: int) -> list[Page | LogError]:
        """Return the result or the error of `page` for each tenant and cursor, with a single statement."""
        if len(places) == 1:
            # For one tenant, PostgreSQL runs `_PAGE` faster than `_PAGES`.
            tenant_id, cursor = places[0]
            return [_page_or_error(await self._pool.rows(_PAGE, tenant_id, cursor.position, max_events, max_bytes), cursor)]
        tenant_ids, after = [tenant_id for tenant_id, _ in places], [cursor.position for _, cursor in places]
        rows: list[list[Row]] = [[] for _ in places]
        for row in await self._pool.rows(_PAGES, tenant_ids, after, max_events, max_bytes):
            rows[row[0] - 1].append(row[1:])
        return [_page_or_error(found, cursor) for found, (_, cursor) in zip(rows, places, strict=True)]

    async def start_at(self, tenant_id: str, moment: datetime) -> tuple[Bounds, Cursor]:
        """Return the cursor directly before the first event recorded at or after the time; the end of the log if there is no such event.

        Raises `CursorExpired` if an event recorded at or after the time was pruned. If no event was pruned and the time is before the first
        event, the cursor is the floor.
        """
        rows = await self._rows(_PLACE_OF, {"tenant": tenant_id, "moment": moment})
        if not rows:
            raise NoLog
        bounds, first = Bounds(*rows[0][:5]), rows[0][5]
        if bounds.floor_recorded_at is not None and bounds.floor_recorded_at >= moment:
            raise CursorExpired
        position = bounds.head if first is None else min(first - 1, bounds.head)
        return bounds, Cursor(bounds.epoch, max(position, bounds.floor))

    async def earliest(self, tenant_id: str) -> tuple[Cursor, datetime | None]:
        """Return the earliest valid cursor, and the recording time of the event after this cursor (None if there is no such event)."""
        rows = await self._rows(_EARLIEST, {"tenant": tenant_id})
        if not rows:
            raise NoLog
        bounds = Bounds(*rows[0][:5])
        return Cursor(bounds.epoch, bounds.floor), rows[0][5]

    async def heads(self, tenant_ids: Sequence[str]) -> dict[str, Cursor]:
        """Return the cursor at the end of each of these logs, with one query. The result does not contain deleted tenants."""
        rows = await self._rows(_HEADS, {"tenants": list(tenant_ids)})
        return {tenant: Cursor(epoch, position) for tenant, epoch, position in rows}

    async def raise_epoch(self, tenant_id: str, seen: Cursor) -> bool:
        """Start a new epoch because the cursor `seen`, which was issued earlier, is above the head.

        Return False if another call has already started it.
        """
        async with self._handle() as handle:
            result = await handle.execute(_RAISE_EPOCH, {"tenant": tenant_id, "epoch": seen.epoch, "position": seen.position})
        raised = result.rowcount > 0
        if raised:
            logger.critical("the log of %s was restored to an earlier state: a new epoch was started, older cursors get 410", tenant_id)
        return raised

    async def _bounds_of(self, tenant_ids: Sequence[str]) -> dict[str, Bounds | None]:
        rows = await self._pool.rows(_BOUNDS, list(tenant_ids))
        return dict.fromkeys(tenant_ids) | {row[0]: Bounds(*row[1:]) for row in rows}

    async def _rows(self, statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._handle() as handle:
            # Binary results avoid decoding every body from hexadecimal text.
            cursor = handle.cursor(binary=True)
            await cursor.execute(statement, parameters)
            return await cursor.fetchall()

    @asynccontextmanager
    async def _handle(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with self._pool.connection() as handle:
            yield handle


def read_pool() -> LinePool:
    """Return a closed pool for Django's default database. The caller must open the pool inside the event loop that will use it."""
    parameters = django_connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    return LinePool(
        kwargs={**parameters, "autocommit": True, "prepare_threshold": 2},
        min_size=1,
        max_size=READ_HANDLES,
        timeout=_HANDLE_TIMEOUT_SECONDS,
        max_idle=60.0,
        configure=_prepare,
        open=False,
        name="log",
    )


async def _prepare(handle: psycopg.AsyncConnection[Any]) -> None:
    # Force generic plans: for logs with a million rows, PostgreSQL would plan each read again, which takes longer than to read one event.
    limits = {"statement_timeout": _STATEMENT_TIMEOUT_MS, "plan_cache_mode": "force_generic_plan"}
    await handle.execute(*set_statement(session_settings() | limits))
    for statement in (_BOUNDS, _PAGE, _PAGES):
        await statement.prepare(handle)


def _page_or_error(rows: Sequence[Row], cursor: Cursor) -> Page | LogError:
    try:
        return _page(rows, cursor)
    except LogError as error:
        return error


def _page(rows: Sequence[Row], cursor: Cursor) -> Page:
    if not rows:
        raise NoLog
    bounds = Bounds(*rows[0][:5])
    bounds.require(cursor)
    events = [LoggedEvent._make(row[5:]) for row in rows if row[5] is not None]
    return Page(bounds, _without_hole(events, cursor, bounds))


def _without_hole(events: list[LoggedEvent], cursor: Cursor, bounds: Bounds) -> list[LoggedEvent]:
    for number, event in enumerate(events):
        if event.position != cursor.position + 1 + number:
            if number == 0:
                raise LogHasHole(event.position - 1)
            return events[:number]
    if not events and bounds.head > cursor.position:
        raise LogHasHole(bounds.head)
    return events
