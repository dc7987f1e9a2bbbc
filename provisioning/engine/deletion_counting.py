"""The part of the deletion guard that the dispatch runs, inside its transaction."""

from __future__ import annotations

import logging

from foundation.database.statements import execute, fetch_one
from provisioning.engine import breaker

logger = logging.getLogger(__name__)

# The window begins with the first deletion in it. One row per guarded stream; a stream without a guard has none.
_COUNT = """
WITH guard AS (
    SELECT stream_id, window_began_at <= clock_timestamp() - make_interval(secs => window_seconds) AS is_over
    FROM provisioning_deletionguard WHERE stream_id = %(stream)s FOR UPDATE
)
UPDATE provisioning_deletionguard g SET
    counted = CASE WHEN guard.is_over THEN 0 ELSE counted END + %(new)s,
    window_began_at = CASE WHEN guard.is_over THEN clock_timestamp() ELSE window_began_at END
FROM guard WHERE g.stream_id = guard.stream_id
RETURNING counted, threshold, window_seconds, staged_since IS NOT NULL
"""
_STAGE = "UPDATE provisioning_deletionguard SET staged_since = clock_timestamp() WHERE stream_id = %s"


def count_deletions(*, stream_id: str, tenant_id: str, new: int) -> None:
    """Count deletions that have just become deliveries; hold the stream in the same transaction when they are too many."""
    if not new:
        return
    counted, threshold, window, is_staged = fetch_one(_COUNT, {"new": new, "stream": stream_id}) or (0, 0, 0, True)
    if is_staged or counted <= threshold:
        return
    execute(_STAGE, [stream_id])
    reason = (
        f"{counted:,} deletions of users within {window:,} seconds, more than the threshold of {threshold:,}. "
        "They wait until somebody allows them."
    )
    logger.warning("stream %s: %s", stream_id, reason)
    breaker.hold_for_person(stream_id=stream_id, tenant_id=tenant_id, reason=reason)
