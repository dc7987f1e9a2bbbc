"""SQL statements that write the outcome of a delivery. Only `provisioning.engine.lanes` calls them, under the lane's lock."""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from foundation.database.statements import Prepared, execute, run_script
from provisioning.engine import breaker
from provisioning.links.rows import UPSERT, as_jsonb
from provisioning.runs.outcomes import Claim, Failure, Success, shortened, storable

_ATTEMPT_COLUMNS = """
INSERT INTO provisioning_attempt (delivery_id, tenant_id, number, trigger, started_at, duration_ms, outcome, error_class, error_status,
    error_scim_type, error_message, retry_at, exchanges, log_lines)
"""
_INSERT_ATTEMPT = (
    _ATTEMPT_COLUMNS
    + """
VALUES (%(delivery)s, %(tenant)s, %(number)s, %(trigger)s, %(started_at)s, %(duration)s, %(outcome)s, %(class)s, %(status)s,
    %(scim_type)s, %(message)s, clock_timestamp() + make_interval(secs => %(retry_in)s), %(exchanges)s, %(log_lines)s)
"""
)
# One statement, because it runs for every delivery. The statement locks the lane. If the claim no longer owns the lane, the statement
# writes only the account link, which says what has happened at the destination. Unless the event was skipped, the statement also resets the
# breaker's count of failures: the destination has accepted a write. The planner may use another index than the primary key. With the
# condition on the tenant, every index that contains the id is as fast as the primary key (see `lane_rows`).
_SETTLE = f"""
WITH lane AS (
    SELECT id FROM provisioning_lane WHERE id = %(lane)s AND token = %(token)s AND lease_until > clock_timestamp() FOR UPDATE
),
tried AS (
    {_ATTEMPT_COLUMNS}
    SELECT %(delivery)s, %(tenant)s, %(number)s, %(trigger)s, %(started_at)s, %(duration)s, %(outcome)s, '', NULL, '', '', NULL, '[]',
        %(log_lines)s
    FROM lane
),
reset AS (
    UPDATE provisioning_breaker SET failures = 0, keys = '[]'
    WHERE stream_id = %(stream)s AND failures > 0 AND %(reached)s AND EXISTS (SELECT 1 FROM lane)
),
linked AS ({UPSERT})
UPDATE provisioning_delivery SET state = %(outcome)s, is_written = %(written)s, reason = %(reason)s, detail = %(detail)s,
    settled_at = clock_timestamp(), error_class = '', error_status = NULL, error_scim_type = '', error_message = '',
    error_fingerprint = ''
WHERE id = %(delivery)s AND tenant_id = %(tenant)s AND EXISTS (SELECT 1 FROM lane)
"""  # noqa: S608  (constants of this module)
_SETTLE_TYPES = {
    "lane": "bigint",
    "token": "uuid",
    "delivery": "bigint",
    "tenant": "text",
    "number": "integer",
    "trigger": "text",
    "started_at": "timestamptz",
    "duration": "double precision",
    "outcome": "text",
    "log_lines": "jsonb",
    "stream": "text",
    "reached": "boolean",
    "written": "boolean",
    "reason": "text",
    "detail": "jsonb",
    "links": "jsonb",
}
SETTLE = Prepared("provisioning_settle", _SETTLE, _SETTLE_TYPES)
_NOTE_FAILURE = """
UPDATE provisioning_delivery SET error_class = %(class)s, error_status = %(status)s, error_scim_type = %(scim_type)s,
    error_message = %(message)s, error_fingerprint = %(fingerprint)s
WHERE id = %(delivery)s
"""
_UNCOUNT = "UPDATE provisioning_delivery SET series_attempts = series_attempts - 1 WHERE id = %s"
_GIVE_BACK = """
UPDATE provisioning_delivery SET series_attempts = series_attempts - 1, attempts = attempts - 1,
    first_attempt_at = CASE WHEN attempts > 1 THEN first_attempt_at END, last_attempt_at = CASE WHEN attempts > 1 THEN last_attempt_at END
WHERE id = %s
"""
_SUPERSEDE = """
UPDATE provisioning_delivery SET state = 'superseded', settled_at = clock_timestamp(), reason = 'a newer event was written' WHERE id = %s
"""
_RESOLVE_LETTER = """
UPDATE provisioning_deadletter SET state = 'resolved', resolved_at = clock_timestamp(), resolution = %s WHERE delivery_id = %s
"""
_BURY = """
UPDATE provisioning_delivery SET state = 'dead', settled_at = clock_timestamp() WHERE id = %s
"""
# If a redelivered event fails again, its dead letter is opened again and keeps its copy of the event. A new or reopened dead letter of an
# ignored kind gets the state `ignored` instead of `open`.
_WRITE_LETTER = """
INSERT INTO provisioning_deadletter (delivery_id, stream_id, tenant_id, key, event_id, event_type, body, state, reason, error_class,
    error_status, error_scim_type, fingerprint, attempts, redelivery_actor, redelivery_reason, redrive, resolution, triaged_at,
    triage_actor, triage_reason)
SELECT d.id, d.stream_id, d.tenant_id, d.key, d.event_id, d.event_type, e.body,
    CASE WHEN k.id IS NULL THEN 'open' ELSE 'ignored' END, d.error_message, d.error_class, d.error_status, d.error_scim_type,
    d.error_fingerprint, d.attempts, '', '', '', '', k.created_at, coalesce(k.actor, ''), coalesce(k.reason, '')
FROM provisioning_delivery d LEFT JOIN events_event e ON e.id = d.event
LEFT JOIN provisioning_ignoredkind k
    ON k.stream_id = d.stream_id AND k.fingerprint = d.error_fingerprint AND k.until > clock_timestamp()
WHERE d.id = %s
ON CONFLICT (delivery_id) DO UPDATE SET state = EXCLUDED.state, reason = EXCLUDED.reason, error_class = EXCLUDED.error_class,
    error_status = EXCLUDED.error_status, error_scim_type = EXCLUDED.error_scim_type, fingerprint = EXCLUDED.fingerprint,
    attempts = EXCLUDED.attempts, triaged_at = EXCLUDED.triaged_at, triage_actor = EXCLUDED.triage_actor,
    triage_reason = EXCLUDED.triage_reason, resolved_at = NULL, resolution = '', created_at = clock_timestamp()
"""
_REQUEUE = """
UPDATE provisioning_delivery SET state = 'todo', series_attempts = 0, redeliveries = redeliveries + 1, is_forced = %s, settled_at = NULL
WHERE id = %s AND state = 'dead'
"""


def success_values(claim: Claim, success: Success) -> dict[str, Any]:
    """Return the parameters of `SETTLE`."""
    # Exchanges of successful runs are not stored. The reason of a skip is stored.
    log_lines = success.log_lines if success.is_skipped else []
    return {
        **_attempt(claim, "skipped" if success.is_skipped else "delivered"),
        "lane": claim.lane_id,
        "token": claim.token,
        "stream": claim.stream_id,
        "duration": success.duration_ms,
        "log_lines": Jsonb(storable(log_lines)),
        "reached": not success.is_skipped,
        "written": success.is_written,
        "reason": shortened(success.reason)[:128],
        "detail": Jsonb(storable(success.detail)),
        "links": as_jsonb(success.links),
    }


def write_success(claim: Claim, success: Success) -> bool:
    """Settle the delivery as delivered or skipped, and store its attempt; return False if the claim has lost its lease."""
    values = success_values(claim, success)
    if not run_script([SETTLE], values)[0][0]:
        return False
    if claim.is_redelivery:
        execute(_RESOLVE_LETTER, [values["outcome"], claim.delivery_id])
    return True


def write_failure(claim: Claim, failure: Failure, *, outcome: str = "failed", retry_in: float | None = None) -> None:
    """Store a failed attempt; the delivery stays in its lane."""
    told = {
        "class": failure.error_class,
        "status": failure.status,
        "scim_type": failure.scim_type[:64],
        "message": shortened(failure.message),
    }
    kept = {"exchanges": Jsonb(storable(failure.exchanges)), "log_lines": Jsonb(storable(failure.log_lines))}
    execute(_INSERT_ATTEMPT, {**_attempt(claim, outcome), **told, **kept, "duration": failure.duration_ms, "retry_in": retry_in})
    execute(_NOTE_FAILURE, {**told, "delivery": claim.delivery_id, "fingerprint": failure.fingerprint})


def uncount(delivery_id: int) -> None:
    """Do not count the last attempt in the series, because failures that belong to a hold do not use up attempts."""
    execute(_UNCOUNT, [delivery_id])


def give_back(delivery_id: int) -> None:
    """Undo the claim of a delivery that did not run or was put off, so that its next attempt gets the same number."""
    execute(_GIVE_BACK, [delivery_id])


def supersede(delivery_id: int) -> None:
    """Settle a redelivery as superseded because a newer event of the document was written."""
    execute(_SUPERSEDE, [delivery_id])
    execute(_RESOLVE_LETTER, ["superseded", delivery_id])


def bury(delivery_id: int, cause: Failure | None = None) -> None:
    """Make the delivery a dead letter with `cause`, or with its last failure if `cause` is None.

    Without `cause`, a delivery whose last failure belongs to a hold stays in its lane instead, and the last attempt does not count.
    """
    if cause is None and breaker.catches(delivery_id):
        execute(_UNCOUNT, [delivery_id])
        return
    if cause is not None:
        told = {"class": cause.error_class, "status": cause.status, "scim_type": "", "message": cause.message}
        execute(_NOTE_FAILURE, {**told, "delivery": delivery_id, "fingerprint": cause.fingerprint})
    execute(_BURY, [delivery_id])
    execute(_WRITE_LETTER, [delivery_id])


def requeue(delivery_id: int, *, is_forced: bool) -> bool:
    """Put a dead delivery back into its lane with a new series of attempts; return False if the delivery is no longer dead."""
    return execute(_REQUEUE, [is_forced, delivery_id]) == 1


def _attempt(claim: Claim, outcome: str) -> dict[str, Any]:
    by_hand = "current" if claim.is_rebuilt else "manual"
    return {
        "delivery": claim.delivery_id,
        "tenant": claim.tenant_id,
        "number": claim.attempt,
        "trigger": by_hand if claim.is_redelivery and claim.series_attempt == 1 else "scheduled",
        "started_at": claim.started_at,
        "outcome": outcome,
        "class": "",
        "status": None,
        "scim_type": "",
        "message": "",
        "retry_in": None,
        "exchanges": Jsonb([]),
        "log_lines": Jsonb([]),
    }
