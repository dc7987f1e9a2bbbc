"""The limit on deletions of accounts that only their user name has proven (`design` 6.1, rule 6)."""

from __future__ import annotations

from django.conf import settings

from foundation.database.statements import execute, fetch_one
from provisioning.runs.failures import Misconfigured

# The window begins with the first deletion in it. A user counts once, however often the deletion is tried; one that is refused does not
# count, so the next window lets it pass.
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
    """Too many accounts were deleted within an hour that only their userName had proven: the stream is held."""


def allow_named_deletion(user_id: str, *, stream_id: str, tenant_id: str) -> None:
    """Count one such deletion that is about to be sent; raise `TooManyNamedDeletions` above the limit of an hour."""
    most = settings.DELETIONS_BY_NAME_PER_HOUR
    if most < 1 or fetch_one(_COUNT, {"stream": stream_id, "tenant": tenant_id, "user": user_id, "most": most}) is None:
        raise TooManyNamedDeletions(
            f"more than {most} accounts within an hour would be deleted that only their userName has proven to be the users'. "
            "Check the server; resume the stream to let as many pass again"
        )


def forget_named_deletions(stream_id: str) -> None:
    """Begin a new window: a person has looked at the stream and lets it go on."""
    execute(_FORGET, [stream_id])
