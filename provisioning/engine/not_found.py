"""Counts events whose users were not found on the server of a stream. These events are skipped, so they cause no failed attempts and
no dead letters."""

from __future__ import annotations

from foundation.database.statements import fetch_one

# The reasons of `provisioning.scim.user_sync` are literals here, so that PostgreSQL uses the partial index. `s` is the stream.
ROWS = """
SELECT 1 FROM provisioning_delivery n WHERE n.stream_id = s.id AND n.created_at > now() - interval '1 day'
    AND n.state = 'skipped' AND n.reason IN ('no user to update', 'no user to delete')
"""
MOST_COUNTED = 10_000
_COUNT = f"SELECT count(*) FROM (SELECT %s::text AS id) s CROSS JOIN LATERAL ({ROWS} LIMIT {MOST_COUNTED}) found"  # noqa: S608  (constants)


def users_not_found(stream_id: str) -> int:
    """Count the events of the last 24 hours that were skipped because the server has no such user; count at most `MOST_COUNTED`."""
    (count,) = fetch_one(_COUNT, [stream_id]) or (0,)
    return int(count)
