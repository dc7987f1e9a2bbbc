"""Holding a stream whose destination is wrong or away: nothing is lost, and it resumes in order.

The breaker holds a stream after many failures in a row that speak against the destination and touch several users; an
action that says it is misconfigured holds its stream at once. Either way one delivery is tried from time to time, and
the first that gets through resumes the stream.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from provisioning.models import FailureClass
from provisioning.outcomes import Claim
from provisioning.statements import execute, fetch_all, fetch_one

logger = logging.getLogger(__name__)

# Failures of one document say nothing about the destination.
_AGAINST_DESTINATION = frozenset({FailureClass.TRANSIENT.value, FailureClass.CONFIGURATION.value})

_COUNT = """
INSERT INTO provisioning_breaker AS b (stream_id, tenant_id, failures, keys)
VALUES (%(stream)s, %(tenant)s, 1, jsonb_build_array(%(key)s::text))
ON CONFLICT (stream_id) DO UPDATE SET failures = b.failures + 1,
    keys = CASE WHEN b.keys ? %(key)s OR jsonb_array_length(b.keys) >= %(users)s THEN b.keys ELSE b.keys || EXCLUDED.keys END
RETURNING failures, jsonb_array_length(keys)
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
_CLOSE = "UPDATE provisioning_breaker SET failures = 0, keys = '[]', probe_at = NULL WHERE stream_id = %s"
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


def count_failure(claim: Claim, error_class: str) -> bool:
    """Count a failure inside the caller's transaction; True when the stream should be held after it committed."""
    if not speaks_against_destination(error_class) or not settings.BREAKER_FAILURES:
        return False
    values = {"stream": claim.stream_id, "tenant": claim.tenant_id, "key": claim.key, "users": settings.BREAKER_USERS}
    failures, users = fetch_one(_COUNT, values) or (0, 0)
    return bool(failures >= settings.BREAKER_FAILURES and users >= settings.BREAKER_USERS)


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
