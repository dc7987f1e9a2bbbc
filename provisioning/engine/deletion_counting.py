"""Counts deletions for the deletion guard, inside the transaction of the dispatch."""

from __future__ import annotations

import logging

from foundation.database.statements import execute, fetch_one
from provisioning.engine import breaker

logger = logging.getLogger(__name__)

# A window starts with its first deletion. The table has one row for each stream with a deletion guard; streams without a row count no
# deletions.
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
    """Count `new` deletions that became deliveries; hold the stream in the same transaction if the count exceeds the threshold."""
    if not new:
        return
    counted, threshold, window, is_staged = fetch_one(_COUNT, {"new": new, "stream": stream_id}) or (0, 0, 0, True)
    if is_staged or counted <= threshold:
        return
    execute(_STAGE, [stream_id])
    reason = (
        f"{counted:,} deletions of users within {window:,} seconds exceed the threshold of {threshold:,}. "
        "They wait for approval by an administrator."
    )
    logger.warning("stream %s: %s", stream_id, reason)
    breaker.hold_for_person(stream_id=stream_id, tenant_id=tenant_id, reason=reason)
