"""Export users as lines of JSON, page by page, with the stream's cursor taken before the first page is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Prefetch

from identity.documents import user_document
from identity.hooks import snapshot_cursor
from identity.models import LinkedIdentity, User

PAGE_ROWS = 500


def export_cursor(tenant_id: str) -> str:
    """Return the cursor from which the stream continues a snapshot that is read from now on; empty without a stream."""
    return snapshot_cursor.of(tenant_id)


def exported_users(*, tenant_id: str, connection_id: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the documents of all users, oldest first, in pages of constant cost; nothing is locked.

    A user that changes meanwhile may be shown as before or after; the stream from the cursor taken first covers it.
    """
    linked = Prefetch("linked_identities", LinkedIdentity.objects.of(tenant_id).select_related("connection").order_by("pk"))
    users = User.objects.of(tenant_id).select_related("connection").prefetch_related(linked).order_by("pk")
    if connection_id is not None:
        users = users.filter(connection_id=connection_id)
    last = 0
    while page := list(users.filter(pk__gt=last)[:PAGE_ROWS]):
        for user in page:
            yield user_document(user, list(user.linked_identities.all()))
        last = page[-1].pk
