"""Holds a stream with mass deletions until an administrator approves the deletions. A stream without a threshold is never held because of
deletions.

Deletions are counted when events become deliveries, so the stream is held before the first deletion over the threshold runs.
The whole stream is held, which keeps the order of its events. Only an administrator can resume the stream; a probe cannot.
"""

from __future__ import annotations

from django.db import transaction

from events.models import EventStream
from foundation.database.statements import execute
from foundation.database.transactions import after_commit
from identity.services.failures import Conflict, Invalid
from provisioning.engine import breaker, nudges
from provisioning.engine.streams import locked_stream
from provisioning.models import DeletionGuard, Lane

LONGEST_WINDOW_SECONDS = 7 * 86400
HIGHEST_THRESHOLD = 1_000_000
_ALLOW = "UPDATE provisioning_deletionguard SET staged_since = NULL, counted = 0, window_began_at = clock_timestamp() WHERE stream_id = %s"


def set_guard(*, tenant_id: str, stream_id: str, threshold: int | None, window_seconds: int = 3600) -> DeletionGuard | None:
    """Set the number of deletions per window that need no approval. If there are more deletions in a window, the stream is held.

    If `threshold` is None, the guard is removed, unless it holds the stream at present. A call of this function never ends a hold.

    Raises `NotFound` for an unknown stream and `Invalid` for a bad threshold or window.
    """
    if threshold is not None and not 0 <= threshold <= HIGHEST_THRESHOLD:
        raise Invalid({"threshold": [f"A number of deletions from 0 to {HIGHEST_THRESHOLD:,}."]})
    if not 1 <= window_seconds <= LONGEST_WINDOW_SECONDS:
        raise Invalid({"window_seconds": [f"A number of seconds from 1 to {LONGEST_WINDOW_SECONDS:,}."]})
    with transaction.atomic():
        locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        if threshold is None:
            # If the guard holds the stream, keep the guard until an administrator allows the deletions.
            DeletionGuard.objects.filter(stream_id=stream_id, tenant_id=tenant_id, staged_since=None).delete()
            return None
        values = {"tenant_id": tenant_id, "threshold": threshold, "window_seconds": window_seconds}
        return DeletionGuard.objects.update_or_create(stream_id=stream_id, defaults=values)[0]


def guard_of(stream: EventStream) -> DeletionGuard | None:
    """Return the guard of a stream, or None."""
    return DeletionGuard.objects.filter(stream_id=stream.pk, tenant_id=stream.tenant_id).first()


def is_staged(stream: EventStream) -> bool:
    """Tell whether the stream has staged deletions."""
    return DeletionGuard.objects.filter(stream_id=stream.pk, tenant_id=stream.tenant_id, staged_since__isnull=False).exists()


def allow_deletions(*, tenant_id: str, stream_id: str) -> None:
    """Let a stream deliver its staged deletions, in order, and start a new window.

    Raises `NotFound`, or `Conflict` if the stream has no staged deletions.
    """
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        if not is_staged(stream):
            raise Conflict("No deletions of this stream wait for approval.")
        execute(_ALLOW, [stream_id])
        breaker.resume_stream(stream_id=stream_id, tenant_id=tenant_id)
        keys = list(
            Lane.objects.filter(stream_id=stream_id).order_by("not_before", "id").values_list("key", flat=True)[: nudges.FIRST_MESSAGES]
        )
        for key in keys:
            after_commit(nudges.post, nudges.DELIVER, stream_id, key)
