"""Holds a stream whose destination is misconfigured or unreachable. No event is lost, and delivery resumes in order.

The breaker opens in three cases: three consecutive 401 answers; 403 for two users, or for one user if the server also refuses reads
(`read_probe`); many consecutive failures of other kinds, for several users. An action that reports `Misconfigured` holds its stream
immediately. A worker periodically probes a held stream with one delivery. If this delivery succeeds, or fails only because of its document,
the stream resumes (ADR 0032, ADR 0076).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db import transaction

from foundation import failpoints
from foundation.database.statements import execute, fetch_all, fetch_one, row_as
from foundation.database.transactions import after_commit
from identity.stopped_tenants import STOPPED_TENANTS
from provisioning.engine import nudges
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Claim

logger = logging.getLogger(__name__)

# Classes of failures that are caused by the destination, not by the document.
_AGAINST_DESTINATION = frozenset({FailureClass.TRANSIENT.value, FailureClass.CONFIGURATION.value})

_UNAUTHORIZED, _FORBIDDEN = 401, 403

# Reads what the failed attempt has written in the same transaction.
_NOTED = "SELECT error_status, error_message FROM provisioning_delivery WHERE id = %s"
# A success resets only `failures` and `keys` (see `delivery_rows`). The counters of 401 and 403 are ignored while `failures` is 0. An
# answer with a status other than 401 resets the counter of 401. An answer with a status other than 403 resets the counter of 403. A request
# without an answer resets no counter.
_COUNT = """
INSERT INTO provisioning_breaker AS b (stream_id, tenant_id, failures, keys, unauthorized, forbidden_keys)
VALUES (%(stream)s, %(tenant)s, 1, jsonb_build_array(%(key)s::text), %(is_401)s::int,
    CASE WHEN %(is_403)s THEN jsonb_build_array(%(key)s::text) ELSE '[]' END)
ON CONFLICT (stream_id) DO UPDATE SET failures = b.failures + 1,
    keys = CASE WHEN b.keys ? %(key)s OR jsonb_array_length(b.keys) >= %(users)s THEN b.keys ELSE b.keys || EXCLUDED.keys END,
    unauthorized = CASE WHEN %(keeps_401)s AND b.failures > 0 THEN b.unauthorized + EXCLUDED.unauthorized ELSE EXCLUDED.unauthorized END,
    forbidden_keys = CASE WHEN NOT %(keeps_403)s OR b.failures = 0 THEN EXCLUDED.forbidden_keys
        WHEN b.forbidden_keys ? %(key)s OR jsonb_array_length(b.forbidden_keys) >= %(forbidden_users)s THEN b.forbidden_keys
        ELSE b.forbidden_keys || EXCLUDED.forbidden_keys END
RETURNING failures AS count, jsonb_array_length(keys) AS users, unauthorized, jsonb_array_length(forbidden_keys) AS forbidden_users
"""
# The destination rejected a document, which proves that the destination accepts the credentials.
_END_REFUSALS = """
UPDATE provisioning_breaker SET unauthorized = 0, forbidden_keys = '[]'
WHERE stream_id = %s AND (unauthorized > 0 OR forbidden_keys <> '[]')
"""
_STATE_FOR = """
SELECT s.held_since IS NOT NULL AS is_held, coalesce(b.failures, 0) AS count, jsonb_array_length(coalesce(b.keys, '[]')) AS users,
    coalesce(b.unauthorized, 0) AS unauthorized, jsonb_array_length(coalesce(b.forbidden_keys, '[]')) AS forbidden_users
FROM provisioning_delivery d JOIN events_eventstream s ON s.id = d.stream_id LEFT JOIN provisioning_breaker b ON b.stream_id = d.stream_id
WHERE d.id = %s AND d.error_class = ANY(%s)
"""
_IS_FORBIDDEN = """
SELECT 1 FROM provisioning_breaker b JOIN events_eventstream s ON s.id = b.stream_id
WHERE b.stream_id = %s AND b.tenant_id = %s AND b.failures > 0 AND b.forbidden_keys <> '[]'
    AND s.status = 'enabled' AND s.held_since IS NULL
"""
_HOLD = """
UPDATE events_eventstream SET held_since = clock_timestamp(), held_reason = %s WHERE id = %s AND tenant_id = %s AND held_since IS NULL
"""
_PLAN_PROBE = """
INSERT INTO provisioning_breaker (stream_id, tenant_id, failures, keys, probe_at)
VALUES (%(stream)s, %(tenant)s, 0, '[]', clock_timestamp() + make_interval(secs => %(pause)s))
ON CONFLICT (stream_id) DO UPDATE SET probe_at = EXCLUDED.probe_at
"""
# Staged deletions need an administrator's approval; a successful probe must not release them.
_IS_STAGED = "EXISTS (SELECT 1 FROM provisioning_deletionguard g WHERE g.stream_id = s.id AND g.staged_since IS NOT NULL)"
_RESUME = f"""
UPDATE events_eventstream s SET held_since = NULL, held_reason = ''
WHERE id = %s AND tenant_id = %s AND held_since IS NOT NULL AND NOT {_IS_STAGED}
"""  # noqa: S608  (constants of this module)
_HOLD_FOR_PERSON = """
UPDATE events_eventstream SET held_since = coalesce(held_since, clock_timestamp()), held_reason = %s WHERE id = %s AND tenant_id = %s
"""
_PLAN_NO_PROBE = "UPDATE provisioning_breaker SET probe_at = NULL WHERE stream_id = %s"
# Locks the lanes in the order of their ids. Skips a lane that another process has locked, because that process already works on the lane.
_WAKE_LANES = """
UPDATE provisioning_lane SET nudged_until = NULL WHERE id IN (
    SELECT id FROM provisioning_lane WHERE stream_id = %s AND nudged_until IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED)
"""
# The counters stay until a delivery succeeds. If a probe that sent nothing, or a mistaken administrator, resumes the stream, the next
# failure of a delivery opens the breaker again.
_CLOSE = "UPDATE provisioning_breaker SET probe_at = NULL WHERE stream_id = %s"
_TAKE_PROBES = f"""
UPDATE provisioning_breaker b SET probe_at = clock_timestamp() + make_interval(secs => %s)
FROM events_eventstream s
WHERE s.id = b.stream_id AND s.status = 'enabled' AND s.held_since IS NOT NULL AND b.probe_at <= clock_timestamp()
    AND NOT {_IS_STAGED} AND s.tenant_id NOT IN ({STOPPED_TENANTS})
RETURNING b.stream_id, b.tenant_id
"""  # noqa: S608


def speaks_against_destination(error_class: str) -> bool:
    """Tell whether the destination causes failures of this class, so that every other document would fail, too."""
    return error_class in _AGAINST_DESTINATION


@dataclass(frozen=True)
class Failures:
    """Consecutive failures of a stream: their number, distinct users, 401 answers, distinct users with 403, and whether the stream is
    held."""

    count: int
    users: int
    unauthorized: int
    forbidden_users: int
    is_held: bool = False

    @property
    def verdict(self) -> str:
        """Return the reason why the breaker opens, or an empty string."""
        if self.count == 0:
            return ""
        if 0 < settings.BREAKER_UNAUTHORIZED <= self.unauthorized:
            return f"The destination refused the credentials in {self.unauthorized} consecutive requests (401)"
        if 0 < settings.BREAKER_FORBIDDEN_USERS <= self.forbidden_users:
            return f"The destination refused {self.forbidden_users} consecutive users (403)"
        if 0 < settings.BREAKER_FAILURES <= self.count and self.users >= settings.BREAKER_USERS:
            return f"{self.count} consecutive deliveries failed"
        return ""


def count_failure(claim: Claim, error_class: str) -> bool:
    """Count a failure inside the caller's transaction. Return True if the stream is held after the commit.

    After a 403 for fewer users than the limit, a worker tests whether the destination also refuses reads.
    """
    status, message = fetch_one(_NOTED, [claim.delivery_id]) or (None, "")
    if not speaks_against_destination(error_class):
        if status not in (None, _UNAUTHORIZED, _FORBIDDEN):
            execute(_END_REFUSALS, [claim.stream_id])
        return False
    found = row_as(Failures, _COUNT, _counted(claim, status))
    verdict = "" if found is None else found.verdict
    if verdict:
        reason = f"{verdict}, the last one with: {message}"
        transaction.on_commit(partial(_hold_tripped, stream_id=claim.stream_id, tenant_id=claim.tenant_id, reason=reason))
    elif status == _FORBIDDEN and settings.BREAKER_FORBIDDEN_USERS:
        after_commit(nudges.post, nudges.READ_PROBE, claim.stream_id, claim.tenant_id)
    return bool(verdict)


def catches(delivery_id: int) -> bool:
    """Tell whether the last failure of a delivery belongs to a hold. If so, the delivery waits and does not become a dead letter.

    A failure belongs to a hold if the destination caused it, and the stream is held or the breaker is about to hold it. Such failures occur
    because other workers can still run deliveries that they claimed before the hold.
    """
    found = row_as(Failures, _STATE_FOR, [delivery_id, sorted(_AGAINST_DESTINATION)])
    return found is not None and (found.is_held or bool(found.verdict))


def is_forbidden(*, stream_id: str, tenant_id: str) -> bool:
    """Tell whether the stream is enabled, is not held, and got 403 as the last answers of its destination."""
    return fetch_one(_IS_FORBIDDEN, [stream_id, tenant_id]) is not None


def hold_stream(*, stream_id: str, tenant_id: str, reason: str) -> None:
    """Pause the stream's deliveries until a probe succeeds or an administrator resumes the stream. Dispatch continues."""
    with transaction.atomic():
        if execute(_HOLD, [reason, stream_id, tenant_id]):
            logger.warning("stream %s is held: %s", stream_id, reason)
            execute(_PLAN_PROBE, {"stream": stream_id, "tenant": tenant_id, "pause": settings.BREAKER_PROBE_SECONDS})


def hold_for_person(*, stream_id: str, tenant_id: str, reason: str) -> None:
    """Hold the stream without probes, inside the caller's transaction. Only an administrator resumes the stream; see `deletion_guard`."""
    execute(_HOLD_FOR_PERSON, [reason, stream_id, tenant_id])
    execute(_PLAN_NO_PROBE, [stream_id])


def resume_stream(*, stream_id: str, tenant_id: str) -> bool:
    """Resume a held stream; deliveries continue in order. Return False if the stream was not held or has staged deletions.

    The sweep sends nudges for the waiting lanes.
    """
    with transaction.atomic():
        if not execute(_RESUME, [stream_id, tenant_id]):
            return False
        execute(_WAKE_LANES, [stream_id])
        execute(_CLOSE, [stream_id])
    logger.info("stream %s resumed", stream_id)
    return True


def take_due_probes() -> list[tuple[str, str]]:
    """Return stream and tenant ids of the held streams whose probe is due, and schedule the next probe of each."""
    return [(stream_id, tenant_id) for stream_id, tenant_id in fetch_all(_TAKE_PROBES, [settings.BREAKER_PROBE_SECONDS])]


def _hold_tripped(*, stream_id: str, tenant_id: str, reason: str) -> None:
    failpoints.reach("tripped")
    hold_stream(stream_id=stream_id, tenant_id=tenant_id, reason=reason)


def _counted(claim: Claim, status: int | None) -> dict[str, object]:
    return {
        "stream": claim.stream_id,
        "tenant": claim.tenant_id,
        "key": claim.key,
        "users": settings.BREAKER_USERS,
        "forbidden_users": max(settings.BREAKER_FORBIDDEN_USERS, 1),
        "is_401": status == _UNAUTHORIZED,
        "is_403": status == _FORBIDDEN,
        "keeps_401": status in (None, _UNAUTHORIZED),
        "keeps_403": status in (None, _FORBIDDEN),
    }
