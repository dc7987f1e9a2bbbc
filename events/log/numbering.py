"""Moves events from the outbox to the log with dense positions, after commit and under a lock on the tenant's row of `Head`.

Event ids are assigned at insertion but become visible in commit order, so a reader that continues after an id would miss an event with a
lower id that commits later. Positions are assigned only to committed events, one transaction per tenant at a time, so a reader misses no
event.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection as django_connection
from psycopg.errors import LockNotAvailable

from events.hints import publish_hint
from events.log.timelines import DURABLE_COMMIT, IS_REPLICATED, fence_of, follow_replication, hold
from events.log.traced_events import LogRange, note_events
from foundation import failpoints
from foundation.database.session_settings import session_settings, set_statement
from foundation.tracing import spans as tracing

logger = logging.getLogger(__name__)

BATCH = 5000
_IDLE_SECONDS = 1.0
_FAILURE_PAUSE_SECONDS = 0.5
# The maximum wait for the lock on the head row, in milliseconds. Another numberer holds the lock for a shorter time. A transaction that
# holds the lock for longer is idle, or starts the log over after a restore.
_HEAD_WAIT_MS = 250
# The interval at which an idle process checks whether commits wait for a synchronous standby.
_REPLICATION_SECONDS = 10.0

_LOCK_HEAD = f"""
SELECT position, greatest(clock_timestamp(), recorded_at), timeline, {IS_REPLICATED} FROM events_head WHERE tenant_id = %s FOR UPDATE
"""  # noqa: S608  (a constant)
# This is a separate statement. Its snapshot is taken after the lock was granted, so the statement sees every event committed until then.
_NUMBER = """
WITH ready AS (
    DELETE FROM events_outbox WHERE event IN (
        SELECT event FROM events_outbox WHERE tenant_id = %(tenant)s ORDER BY event LIMIT %(batch)s
    ) RETURNING event
)
INSERT INTO events_logentry (tenant_id, position, event_id, recorded_at)
SELECT %(tenant)s, %(position)s + row_number() OVER (ORDER BY event), event, %(recorded_at)s FROM ready
"""
_MOVE_HEAD = "UPDATE events_head SET position = %(position)s, recorded_at = %(recorded_at)s WHERE tenant_id = %(tenant)s"
_DROP = """
WITH dropped AS (DELETE FROM events_outbox WHERE tenant_id = %(tenant)s RETURNING event)
DELETE FROM events_event WHERE id IN (SELECT event FROM dropped)
"""


@dataclass(frozen=True)
class NumberedBatch:
    """The result of one numbering transaction: `count` events up to `head_position`, all with the same `recorded_at`."""

    tenant_id: str
    count: int
    head_position: int
    recorded_at: datetime


def number_batch(database: psycopg.Connection[Any], tenant_id: str) -> NumberedBatch | None:
    """Number at most 5,000 waiting events of the tenant, oldest first, and commit durably. Return None if the tenant has no log.

    After a promotion that may have lost numbered events, the log first gets a new epoch (`events.log.timelines`). A tenant without a head
    row was deleted; its waiting events are deleted, too. The transaction is READ COMMITTED: `_NUMBER` must see events that were committed
    while `_LOCK_HEAD` waited for the lock.
    """
    database.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    fence, began_ns = fence_of(database), time.time_ns()
    with database.transaction(), database.cursor() as cursor:
        cursor.execute(DURABLE_COMMIT)
        head = cursor.execute(_LOCK_HEAD, [tenant_id]).fetchone()
        if head is None:
            cursor.execute(_DROP, {"tenant": tenant_id})
            return None
        position, recorded_at, timeline, is_replicated = head
        if fence is not None and timeline != fence.identity.timeline:
            hold(cursor, fence, tenant_id, timeline)
        cursor.execute(_NUMBER, {"tenant": tenant_id, "batch": BATCH, "position": position, "recorded_at": recorded_at})
        count = cursor.rowcount
        if count:
            position += count
            failpoints.reach("numbering")
            cursor.execute(_MOVE_HEAD, {"tenant": tenant_id, "position": position, "recorded_at": recorded_at})
    if count:
        failpoints.reach("numbered")
        if tracing.is_on():
            numbered = LogRange(tenant_id, after=position - count, through=position)
            note_events(database, numbered, "events.number", began_ns=began_ns)
    # The standby can be removed while a commit waits for it, so check after the commit whether commits still wait for a standby.
    if fence is not None and (fence.is_replicated or is_replicated):
        follow_replication(database, fence)
    return NumberedBatch(tenant_id, count, position, recorded_at)


def number_tenant(tenant_id: str, database: psycopg.Connection[Any] | None = None) -> NumberedBatch | None:
    """Number every waiting event of the tenant; return the last batch with the total count, or None without a log.

    Without `database`, opens a connection and raises Django's errors.
    """
    if database is not None:
        return _number_all(tenant_id, database)
    # Callers answer 503 for Django's database errors. So raise Django's errors in place of psycopg's errors.
    with django_connection.wrap_database_errors, open_connection() as owned:
        return _number_all(tenant_id, owned)


def _number_all(tenant_id: str, database: psycopg.Connection[Any]) -> NumberedBatch | None:
    total = 0
    while True:
        batch = number_batch(database, tenant_id)
        if batch is None:
            return None
        total += batch.count
        if batch.count < BATCH:
            return NumberedBatch(tenant_id, total, batch.head_position, batch.recorded_at)


def waiting_tenants(database: psycopg.Connection[Any]) -> list[str]:
    """Return the tenants with events that have no position yet."""
    with database.transaction():
        return [row[0] for row in database.execute("SELECT DISTINCT tenant_id FROM events_outbox").fetchall()]


def open_connection() -> psycopg.Connection[Any]:
    """Open a connection to Django's database outside of any pool, in autocommit mode."""
    parameters = django_connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    opened = psycopg.connect(**parameters, autocommit=True)
    try:
        opened.execute(*set_statement(session_settings()))
    except BaseException:
        opened.close()
        raise
    return opened


def _impatient_connection() -> psycopg.Connection[Any]:
    opened = open_connection()
    opened.execute(*set_statement({"lock_timeout": _HEAD_WAIT_MS}))
    return opened


Callback = Callable[[str, int], None]
_callbacks: list[Callback] = []


def on_numbered(callback: Callback) -> None:
    """Call `callback(tenant_id, head_position)` in this process after each numbering. `callback` must be fast and must not raise."""
    if callback not in _callbacks:
        _callbacks.append(callback)


class Numberer:
    """A daemon thread with its own connection. It numbers the waiting events of this process and of processes that have ended.

    Every second, the thread also queries the outbox for tenants that wait. If a process dies between commit and numbering, the numberer of
    another process numbers its events.
    """

    def __init__(self) -> None:
        # A queue without duplicates: the keys of a dictionary are unique and keep their order.
        self._pending: dict[str, None] = {}
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._replication_at = 0.0

    def notify(self, tenant_id: str) -> None:
        """Add the tenant to the pending tenants, without waiting."""
        if not settings.EVENTS_NUMBERER_ENABLED:
            return
        with self._guard:
            self._pending[tenant_id] = None
        self.start()
        self._wake.set()

    def start(self) -> None:
        """Start the thread if it is not running."""
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="numberer", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Number the pending tenants and end the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        database: psycopg.Connection[Any] | None = None
        looked_at = 0.0
        while not self._stopping or self._pending:
            self._wake.wait(_IDLE_SECONDS)
            self._wake.clear()
            try:
                if database is None or database.closed:
                    database = _impatient_connection()
                if time.monotonic() - looked_at >= _IDLE_SECONDS:
                    self._add(waiting_tenants(database))
                    looked_at = time.monotonic()
                    self._look_at_replication(database)
                self._number_pending(database)
            except psycopg.Error as error:
                # The database is unavailable or the statement was canceled. No event is lost, because the events stay in the outbox.
                logger.warning("numbering paused: %s", type(error).__name__)
                if database is not None:
                    database.close()
                if self._stopping:
                    return
                time.sleep(_FAILURE_PAUSE_SECONDS)
        if database is not None:
            database.close()

    def _look_at_replication(self, database: psycopg.Connection[Any]) -> None:
        if time.monotonic() - self._replication_at >= _REPLICATION_SECONDS and (fence := fence_of(database)) is not None:
            follow_replication(database, fence)
            self._replication_at = time.monotonic()

    def _add(self, tenants: list[str]) -> None:
        with self._guard:
            self._pending.update(dict.fromkeys(tenants))

    def _number_pending(self, database: psycopg.Connection[Any]) -> None:
        """Number one batch of each pending tenant in turn. So a burst of one tenant delays the other tenants by at most one batch.

        If another transaction has locked the log of a tenant, the tenant is skipped; the query of the outbox, which runs every second,
        adds the tenant again.
        """
        while True:
            with self._guard:
                if not self._pending:
                    return
                tenant_id = next(iter(self._pending))
                del self._pending[tenant_id]
            try:
                batch = number_batch(database, tenant_id)
            except LockNotAvailable:
                logger.warning("a transaction locks the log of %s; other logs are numbered first", tenant_id)
                continue
            except psycopg.Error:
                self._add([tenant_id])
                raise
            if batch is not None and batch.count:
                self._announce(batch)
                if batch.count == BATCH:
                    self._add([tenant_id])

    def _announce(self, batch: NumberedBatch) -> None:
        for callback in _callbacks:
            try:
                callback(batch.tenant_id, batch.head_position)
            except Exception:
                logger.exception("a listener of the numberer failed")
        publish_hint(batch.tenant_id, batch.head_position)


_numberers: dict[int, Numberer] = {}


def numberer() -> Numberer:
    """Return the numberer of this process; a forked child process gets a new numberer."""
    return _numberers.setdefault(os.getpid(), Numberer())
