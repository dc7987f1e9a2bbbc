"""From row images to the document of a resource and its event's data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from events.catalogue import Change, DocumentKind
from events.images import Image, Rows
from events.snapshots import Snapshot, row_of
from identity.change_context import current_change_context
from identity.documents.connection import connection_document
from identity.documents.user import user_document
from identity.models import Connection, LinkedIdentity, User
from identity.timestamps import wire_time


def document_of(kind: DocumentKind, rows: Rows, references: Mapping[str, Mapping[str, Image]]) -> dict[str, Any] | None:
    """Return the document that `rows` make, or None when there is no root."""
    if rows.root is None:
        return None
    if kind.name == "connection":
        return connection_document(row_of(Connection, rows.root))
    connections = {key: row_of(Connection, image) for key, image in references["identity_connection"].items()}
    user = row_of(User, rows.root)
    user.connection = connections[user.connection_id]
    linked = sorted(
        (row_of(LinkedIdentity, image) for image in rows.parts.get("identity_linkedidentity", {}).values()), key=lambda row: row.pk
    )
    for identity in linked:
        identity.connection = connections[identity.connection_id]
    return user_document(user, linked)


def event_data(
    kind: DocumentKind, change: Change, snapshot: Snapshot, references: Mapping[str, Mapping[str, Image]], moment: datetime
) -> dict[str, Any]:
    """Return `data` of the event (`contract/events.md` 2): the object, the previous one on updates, and the context."""
    shown = change.object
    if change.type == "user.deleted":
        shown = {**shown, "deleted_at": wire_time(moment)}
    data: dict[str, Any] = {"object": shown}
    if change.previous is not None:
        data["previous_object"] = change.previous
    data["context"] = _context(kind, snapshot, references)
    return data


def _context(kind: DocumentKind, snapshot: Snapshot, references: Mapping[str, Mapping[str, Image]]) -> dict[str, Any]:
    # Public clients of two generations read the tenant from `id` and from `tenant_id`.
    context: dict[str, Any] = {"tenant": {"id": snapshot.tenant_id, "tenant_id": snapshot.tenant_id}}
    root = snapshot.now.root or snapshot.before.root
    connection = None
    if kind.name == "user" and root is not None:
        connection = references["identity_connection"].get(root["connection_id"])
    if kind.name == "connection":
        connection = root
    if connection is not None:
        context["connection"] = {field: connection[field] for field in ("id", "name", "strategy")}
    current = current_change_context()
    if current.client is not None:
        context["client"] = current.client
    if current.request is not None:
        context["request"] = current.request
    return context
