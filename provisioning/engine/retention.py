"""Deletes old rows in small batches. Waiting deliveries, and open and acknowledged dead letters, are kept.

The conditions on ages use `statement_timestamp()`: with `clock_timestamp()`, which is volatile, PostgreSQL uses no index.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import transaction

from foundation.database.statements import execute, fetch_all
from identity.stopped_tenants import STOPPED_TENANTS

BATCH = 2000
# Clients can read executions for this many days. An execution is an attempt or a trial.
TRIALS_KEPT_DAYS = 10

_IS_RUNNING = f"tenant_id NOT IN ({STOPPED_TENANTS})"
_CLEAR_BODIES = f"""
UPDATE provisioning_attempt SET exchanges = '[]', log_lines = '[]' WHERE id IN (
    SELECT id FROM provisioning_attempt WHERE exchanges <> '[]' AND started_at < statement_timestamp() - make_interval(secs => %s)
        AND {_IS_RUNNING}
    ORDER BY started_at LIMIT %s)
"""  # noqa: S608  (constants)
_OLD = f"""
SELECT d.id FROM provisioning_delivery d
WHERE d.created_at < statement_timestamp() - make_interval(secs => %s) AND d.state <> 'todo' AND NOT EXISTS (
    SELECT 1 FROM provisioning_deadletter letter WHERE letter.delivery_id = d.id AND letter.state NOT IN ('resolved', 'ignored'))
    AND d.{_IS_RUNNING}
LIMIT %s FOR UPDATE SKIP LOCKED
"""  # noqa: S608  (constants)
# Deliveries of a deleted stream, which are left over because the deletion was interrupted.
_ORPHANED = f"""
SELECT d.id FROM provisioning_delivery d WHERE NOT EXISTS (SELECT 1 FROM events_eventstream s WHERE s.id = d.stream_id)
    AND d.{_IS_RUNNING}
LIMIT %s FOR UPDATE SKIP LOCKED
"""  # noqa: S608  (constants)
_OF_STREAM = "SELECT d.id FROM provisioning_delivery d WHERE d.stream_id = %s LIMIT %s FOR UPDATE SKIP LOCKED"
# A test event is not in the log, so the row of the event is deleted with its delivery.
_DROP = """
WITH events AS (
    DELETE FROM events_event WHERE id IN (SELECT event FROM provisioning_delivery WHERE id = ANY(%(ids)s) AND key LIKE 'test:%%')
),
attempts AS (DELETE FROM provisioning_attempt WHERE delivery_id = ANY(%(ids)s)),
letters AS (DELETE FROM provisioning_deadletter WHERE delivery_id = ANY(%(ids)s))
DELETE FROM provisioning_delivery WHERE id = ANY(%(ids)s)
"""
_EXPIRED_KINDS = f"DELETE FROM provisioning_ignoredkind WHERE until < statement_timestamp() AND {_IS_RUNNING}"  # noqa: S608  (constants)
_OLD_ALERTS = f"DELETE FROM provisioning_alert WHERE created_at < statement_timestamp() - make_interval(secs => %s) AND {_IS_RUNNING}"  # noqa: S608
_OLD_TRIALS = f"""
DELETE FROM provisioning_trial WHERE started_at < statement_timestamp() - make_interval(secs => %s)
    AND action_id NOT IN (SELECT id FROM provisioning_action WHERE tenant_id IN ({STOPPED_TENANTS}))
"""  # noqa: S608  (constants)
# Deletes tallies of deleted streams: a worker may count an attempt of a stream while the stream is being deleted.
_ORPHANED_TALLIES = f"""
DELETE FROM provisioning_streamtally t WHERE NOT EXISTS (SELECT 1 FROM events_eventstream s WHERE s.id = t.stream_id) AND t.{_IS_RUNNING}
"""  # noqa: S608  (constants)
_NOTED_FOR_STREAM = (
    "DELETE FROM provisioning_ignoredkind WHERE stream_id = %s",
    "DELETE FROM provisioning_alert WHERE stream_id = %s",
    "DELETE FROM provisioning_streamtally WHERE stream_id = %s",
)
# An ended link blocks redeliveries of older events. If the user has no dead letters, no event can be redelivered, so the link is not
# needed any longer.
_ENDED_LINKS = f"""
DELETE FROM provisioning_accountlink l WHERE l.id IN (
    SELECT e.id FROM provisioning_accountlink e
    WHERE e.ended IS NOT NULL AND e.updated_at < statement_timestamp() - make_interval(secs => %s) AND NOT EXISTS (
        SELECT 1 FROM provisioning_deadletter d WHERE d.tenant_id = e.tenant_id AND d.key = 'user:' || e.user_id)
        AND e.{_IS_RUNNING}
    LIMIT %s FOR UPDATE SKIP LOCKED)
"""  # noqa: S608  (constants)
_DEAD_LOCKS = f"DELETE FROM provisioning_accountlock WHERE until < statement_timestamp() - interval '1 hour' AND {_IS_RUNNING}"  # noqa: S608
_DAY = 86400.0


def prune() -> int:
    """Delete everything that is older than its retention; return the number of deleted deliveries."""
    _until_done(_clear_bodies)
    execute(_EXPIRED_KINDS)
    execute(_OLD_TRIALS, [TRIALS_KEPT_DAYS * _DAY])
    execute(_OLD_ALERTS, [max(settings.DELIVERY_RETENTION_DAYS * _DAY, 2 * settings.DEAD_LETTER_ALERT_PERIOD_SECONDS)])
    execute(_DEAD_LOCKS)
    execute(_ORPHANED_TALLIES)
    _until_done(lambda: execute(_ENDED_LINKS, [2 * settings.DELIVERY_RETENTION_DAYS * _DAY, BATCH]))
    dropped = _until_done(lambda: _drop(_OLD, [settings.DELIVERY_RETENTION_DAYS * _DAY, BATCH]))
    return dropped + _until_done(lambda: _drop(_ORPHANED, [BATCH]))


def drop_stream_rows(stream_id: str) -> int:
    """Delete the deliveries, attempts, dead letters, ignored kinds, alerts and tallies of a deleted stream."""
    for statement in _NOTED_FOR_STREAM:
        execute(statement, [stream_id])
    return _until_done(lambda: _drop(_OF_STREAM, [stream_id, BATCH]))


def _clear_bodies() -> int:
    return execute(_CLEAR_BODIES, [settings.ATTEMPT_BODIES_DAYS * _DAY, BATCH])


def _drop(selection: str, parameters: list[object]) -> int:
    with transaction.atomic():
        ids = [delivery_id for (delivery_id,) in fetch_all(selection, parameters)]
        if ids:
            execute(_DROP, {"ids": ids})
        return len(ids)


def _until_done(step: Callable[[], int]) -> int:
    total = 0
    while count := step():
        total += count
    return total
