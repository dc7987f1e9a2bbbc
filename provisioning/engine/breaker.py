"""Holding a stream whose destination is wrong or away: nothing is lost, and it resumes in order.

The breaker opens after three 401 in a row, after 403 for two users or where reading is refused too (`read_probe`), and after
many other failures in a row that touch several users. An action that says it is misconfigured holds its stream at once.
Either way one delivery is tried from time to time, and the first that gets through resumes the stream (ADR 0032, ADR 0076).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.db import transaction

from foundation.database.statements import execute, fetch_all, fetch_one, row_as
from provisioning import failpoints
from provisioning.engine import nudges
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Claim

logger = logging.getLogger(__name__)

# Failures of one document say nothing about the destination.
_AGAINST_DESTINATION = frozenset({FailureClass.TRANSIENT.value, FailureClass.CONFIGURATION.value})

_UNAUTHORIZED, _FORBIDDEN = 401, 403

# What the failed attempt has just noted, in the same transaction.
_NOTED = "SELECT error_status, error_message FROM provisioning_delivery WHERE id = %s"
# A success resets `failures` alone: the other rows of failures count only while there are some. An answer with another status
# ends the row of a status; a request without an answer proves nothing and leaves it.
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
# The destination has judged a document, so it accepts the credentials.
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
# Deletions that wait for a person are let go by that person, not by a probe that got through.
_IS_STAGED = "EXISTS (SELECT 1 FROM provisioning_deletionguard g WHERE g.stream_id = s.id AND g.staged_since IS NOT NULL)"
_RESUME = f"""
UPDATE events_eventstream s SET held_since = NULL, held_reason = ''
WHERE id = %s AND tenant_id = %s AND held_since IS NOT NULL AND NOT {_IS_STAGED}
"""  # noqa: S608  (constants of this module)
_HOLD_FOR_PERSON = """
UPDATE events_eventstream SET held_since = coalesce(held_since, clock_timestamp()), held_reason = %s WHERE id = %s AND tenant_id = %s
"""
_PLAN_NO_PROBE = "UPDATE provisioning_breaker SET probe_at = NULL WHERE stream_id = %s"
# In id order and never waiting: a lane that somebody holds is in work anyway.
_WAKE_LANES = """
UPDATE provisioning_lane SET nudged_until = NULL WHERE id IN (
    SELECT id FROM provisioning_lane WHERE stream_id = %s AND nudged_until IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED)
"""
# The rows of failures stay until something gets through: a probe that sent nothing, or a person who was wrong, resumes the
# stream for one failure, which is caught like the ones before it.
_CLOSE = "UPDATE provisioning_breaker SET probe_at = NULL WHERE stream_id = %s"
_TAKE_PROBES = f"""
UPDATE provisioning_breaker b SET probe_at = clock_timestamp() + make_interval(secs => %s)
FROM events_eventstream s
WHERE s.id = b.stream_id AND s.status = 'enabled' AND s.held_since IS NOT NULL AND b.probe_at <= clock_timestamp()
    AND NOT {_IS_STAGED}
RETURNING b.stream_id, b.tenant_id
"""  # noqa: S608


def speaks_against_destination(error_class: str) -> bool:
    """Tell whether such a failure would have met any other document as well."""
    return error_class in _AGAINST_DESTINATION


@dataclass(frozen=True)
class Failures:
    """How often a stream failed in a row: in all, with how many users, with 401, and with 403 for how many users. It may be held."""

    count: int
    users: int
    unauthorized: int
    forbidden_users: int
    is_held: bool = False

    @property
    def verdict(self) -> str:
        """Return why the breaker is open, an empty text when it is not."""
        if self.count == 0:
            return ""
        if 0 < settings.BREAKER_UNAUTHORIZED <= self.unauthorized:
            return f"The destination refused the credentials {self.unauthorized} times in a row (401)"
        if 0 < settings.BREAKER_FORBIDDEN_USERS <= self.forbidden_users:
            return f"The destination refused {self.forbidden_users} users in a row (403)"
        if 0 < settings.BREAKER_FAILURES <= self.count and self.users >= settings.BREAKER_USERS:
            return f"{self.count} deliveries in a row failed"
        return ""


def count_failure(claim: Claim, error_class: str) -> bool:
    """Count a failure that was noted inside the caller's transaction; True when the stream is held once it has committed.

    After a 403 for too few users a worker asks whether reading is refused too.
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
        transaction.on_commit(partial(nudges.post, nudges.READ_PROBE, claim.stream_id, claim.tenant_id), robust=True)
    return bool(verdict)


def catches(delivery_id: int) -> bool:
    """Tell whether the last failure of a delivery belongs to a hold: what a hold catches waits and is no dead letter.

    Between the failure that opens the breaker and the hold, and while a stream is held, other workers still run deliveries.
    """
    found = row_as(Failures, _STATE_FOR, [delivery_id, sorted(_AGAINST_DESTINATION)])
    return found is not None and (found.is_held or bool(found.verdict))


def is_forbidden(*, stream_id: str, tenant_id: str) -> bool:
    """Tell whether a stream that delivers was last answered with 403."""
    return fetch_one(_IS_FORBIDDEN, [stream_id, tenant_id]) is not None


def hold_stream(*, stream_id: str, tenant_id: str, reason: str) -> None:
    """Stop the stream's deliveries, not its dispatch, until a probe gets through or somebody resumes it."""
    with transaction.atomic():
        if execute(_HOLD, [reason, stream_id, tenant_id]):
            logger.warning("stream %s is held: %s", stream_id, reason)
            execute(_PLAN_PROBE, {"stream": stream_id, "tenant": tenant_id, "pause": settings.BREAKER_PROBE_SECONDS})


def hold_for_person(*, stream_id: str, tenant_id: str, reason: str) -> None:
    """Hold the stream, held or not, inside the caller's transaction, without probes: a person resumes it, see `deletion_guard`."""
    execute(_HOLD_FOR_PERSON, [reason, stream_id, tenant_id])
    execute(_PLAN_NO_PROBE, [stream_id])


def resume_stream(*, stream_id: str, tenant_id: str) -> bool:
    """Let a held stream deliver again, in order; False when it was not held, or when its deletions wait for a person.

    The sweep wakes what waits.
    """
    with transaction.atomic():
        if not execute(_RESUME, [stream_id, tenant_id]):
            return False
        execute(_WAKE_LANES, [stream_id])
        execute(_CLOSE, [stream_id])
    logger.info("stream %s resumed", stream_id)
    return True


def take_due_probes() -> list[tuple[str, str]]:
    """Return stream and tenant of the held streams whose turn it is to try one delivery, and plan the next turn."""
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
