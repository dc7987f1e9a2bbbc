"""Limits deletions of accounts that are identified by their user name alone (docs/adr/0072)."""

from __future__ import annotations

from django.conf import settings

from foundation.database.statements import execute, fetch_one
from provisioning.runs.failures import Misconfigured

# A window starts with its first deletion. A user counts once, for any number of attempts. A refused deletion does not count; the
# next window can allow it.
_COUNT = """
INSERT INTO provisioning_nameddeletions AS n (stream_id, tenant_id, user_ids)
VALUES (%(stream)s, %(tenant)s, jsonb_build_array(%(user)s::text))
ON CONFLICT (stream_id) DO UPDATE SET
    user_ids = CASE WHEN n.window_began_at <= clock_timestamp() - interval '1 hour' THEN EXCLUDED.user_ids
        WHEN n.user_ids ? %(user)s THEN n.user_ids ELSE n.user_ids || EXCLUDED.user_ids END,
    window_began_at = CASE WHEN n.window_began_at <= clock_timestamp() - interval '1 hour' THEN clock_timestamp() ELSE n.window_began_at END
WHERE jsonb_array_length(n.user_ids) < %(most)s OR n.user_ids ? %(user)s OR n.window_began_at <= clock_timestamp() - interval '1 hour'
RETURNING 1
"""
_FORGET = "DELETE FROM provisioning_nameddeletions WHERE stream_id = %s"


class TooManyNamedDeletions(Misconfigured):
    """Too many accounts that are identified by their userName alone would be deleted within an hour: the stream is held."""


def allow_named_deletion(user_id: str, *, stream_id: str, tenant_id: str) -> None:
    """Count a deletion before it is sent; raise `TooManyNamedDeletions` above the limit per hour."""
    most = settings.DELETIONS_BY_NAME_PER_HOUR
    if most < 1 or fetch_one(_COUNT, {"stream": stream_id, "tenant": tenant_id, "user": user_id, "most": most}) is None:
        raise TooManyNamedDeletions(
            f"more than {most} accounts that are identified by their userName alone would be deleted within an hour. "
            "Check the server; resume the stream to allow the same number again"
        )


def forget_named_deletions(stream_id: str) -> None:
    """Start a new window, because an administrator has resumed the stream."""
    execute(_FORGET, [stream_id])
