"""The cursor at a tenant's present head, for snapshots that the stream continues."""

from __future__ import annotations

from django.conf import settings

from events.log.cursor import Cursor, CursorSealer
from events.models import Head


def head_cursor(tenant_id: str) -> str:
    """Return the sealed cursor of the last position; empty text when the tenant has no log.

    Taken before a snapshot is read: whatever has a position by now is in the snapshot, whatever gets one later comes
    with the stream, and what was committed but not numbered comes twice, with the same content.
    """
    head = Head.objects.filter(pk=tenant_id).first()
    if head is None:
        return ""
    return CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant_id).seal(Cursor(epoch=head.epoch, position=head.position))
