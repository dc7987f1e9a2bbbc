"""Returns the cursor of a tenant's present head. A snapshot contains this cursor, so that a client can continue with the stream."""

from __future__ import annotations

from django.conf import settings

from events.log.cursor import Cursor, CursorSealer
from events.models import Head


def head_cursor(tenant_id: str) -> str:
    """Return the sealed cursor of the last position; an empty string when the tenant has no log.

    Take the cursor before reading a snapshot. Events up to the cursor are in the snapshot, and the stream delivers later positions. Events
    that are committed but not yet numbered are in the snapshot and on the stream, with the same content.
    """
    head = Head.objects.filter(pk=tenant_id).first()
    if head is None:
        return ""
    return CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant_id).seal(Cursor(epoch=head.epoch, position=head.position))
