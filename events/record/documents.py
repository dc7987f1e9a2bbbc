"""Builds the document of a resource or relation, and the data of its event, from row images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from events.record.catalogue import Change, DocumentKind
from events.record.images import Image, Rows
from events.record.snapshots import Snapshot, row_of
from foundation.change_context import current_change_context
from foundation.shapes import values
from foundation.timestamps import wire_time
from identity.documents.connection import connection_document
from identity.documents.user import user_document
from identity.models import Connection, LinkedIdentity, User
from identity.shapes import ORGANIZATION, ORGANIZATION_CONNECTION

References = Mapping[str, Mapping[str, Image]]
Document = dict[str, Any]


def document_of(kind: DocumentKind, rows: Rows, references: References) -> Document | None:
    """Return the document of `rows`, with every field that an event type of this kind needs; None if the rows have no root."""
    if rows.root is None:
        return None
    return _BUILDERS[kind.name](rows.root, rows, references)


def event_data(kind: DocumentKind, change: Change, snapshot: Snapshot, references: References, moment: datetime) -> Document:
    """Return `data` of the event: the object, the previous object if the type has one, and the context."""
    data: Document = {"object": _shown(change, moment)}
    if change.previous is not None:
        data["previous_object"] = change.previous
    elif change.type in _SHOW_ASSIGNED_BEFORE:
        data["previous_object"] = change.document
    data["context"] = _context(kind, snapshot, references)
    return data


# Events of a removed role: `object` contains only the id, and `previous_object` contains the role as it was assigned.
_SHOW_ASSIGNED_BEFORE = frozenset({"group.role.deleted", "organization.group.role.deleted"})


def _shown(change: Change, moment: datetime) -> Document:
    document = change.document
    if change.type == "user.deleted":
        return {**document, "deleted_at": wire_time(moment)}
    if change.type == "organization.deleted":
        return _without(document, "branding")
    if change.type == "organization.connection.removed":
        return {name: document[name] if name == "organization" else {"id": document[name]["id"]} for name in ("organization", "connection")}
    if change.type == "group.created":
        return _without(document, "updated_at")
    if change.type in _SHOW_ASSIGNED_BEFORE:
        return {**_without(document, "created_at"), "role": {"id": document["role"]["id"]}, "deleted_at": wire_time(moment)}
    return document


def _without(document: Document, name: str) -> Document:
    return {key: value for key, value in document.items() if key != name}


def _connection(root: Image, rows: Rows, references: References) -> Document:
    return connection_document(row_of(Connection, root))


def _user(root: Image, rows: Rows, references: References) -> Document:
    connections = {
        key: Connection(**{name: image[name] for name in ("id", "name", "strategy")}) for key, image in references["connection_id"].items()
    }
    user = row_of(User, root)
    user.connection = connections[user.connection_id]
    images = rows.parts.get("identity_linkedidentity", {}).values()
    linked = sorted((row_of(LinkedIdentity, image) for image in images), key=lambda row: row.pk)
    for identity in linked:
        identity.connection = connections[identity.connection_id]
    return user_document(user, linked)


def _organization(root: Image, rows: Rows, references: References) -> Document:
    return values(root.__getitem__, ORGANIZATION.documented)


def _group(root: Image, rows: Rows, references: References) -> Document:
    times = {name: _time(root[name]) for name in ("created_at", "updated_at")}
    return {**_group_reference(root), "name": root["name"], **times}


def _group_reference(image: Image) -> Document:
    owner = {name: image[name] for name in ("connection_id", "organization_id", "external_id") if image[name] is not None}
    return {"id": image["id"], "type": image["type"], **owner}


def _organization_connection(root: Image, rows: Rows, references: References) -> Document:
    shown = values(root.__getitem__, ORGANIZATION_CONNECTION.recorded)
    return {**_in_organization(root, references), "connection": {"id": root["connection_id"]}, **shown}


def _organization_member(root: Image, rows: Rows, references: References) -> Document:
    return {**_in_organization(root, references), "user": _member_user(root, references)}


def _organization_member_role(root: Image, rows: Rows, references: References) -> Document:
    return {"organization": {"id": root["organization_id"]}, "user": _member_user(root, references), "role": _role(root, references)}


def _organization_group_role(root: Image, rows: Rows, references: References) -> Document:
    return {
        "organization": {"id": root["organization_id"]},
        "role": _role(root, references),
        "group": _group_reference(references["group_id"][root["group_id"]]),
        "created_at": _time(root["created_at"]),
    }


def _group_member(root: Image, rows: Rows, references: References) -> Document:
    group = _group_reference(references["group_id"][root["group_id"]])
    if root["user_id"] is not None:
        return {"group": group, "member": {"member_type": "user", "id": _member_user(root, references)["user_id"]}}
    nested = references["nested_group_id"][root["nested_group_id"]]
    member = {"member_type": "connection", "id": nested["id"], "type": nested["type"], "connection_id": nested["connection_id"]}
    return {"group": group, "member": member}


def _group_role(root: Image, rows: Rows, references: References) -> Document:
    group = _group_reference(references["group_id"][root["group_id"]])
    return {"group": group, "role": _role(root, references), "created_at": _time(root["created_at"])}


def _in_organization(root: Image, references: References) -> Document:
    organization = references["organization_id"][root["organization_id"]]
    return {"organization": {"id": organization["id"], "name": organization["name"]}}


def _member_user(root: Image, references: References) -> Document:
    return {"user_id": references["user_id"][str(root["user_id"])]["user_id"]}


def _role(root: Image, references: References) -> Document:
    role = references["role_id"][root["role_id"]]
    return {"id": role["id"], "name": role["name"]}


def _time(value: str) -> str:
    return wire_time(datetime.fromisoformat(value))


_BUILDERS: dict[str, Callable[[Image, Rows, References], Document]] = {
    "connection": _connection,
    "user": _user,
    "organization": _organization,
    "group": _group,
    "organization.connection": _organization_connection,
    "organization.member": _organization_member,
    "organization.member.role": _organization_member_role,
    "organization.group.role": _organization_group_role,
    "group.member": _group_member,
    "group.role": _group_role,
}


def _context(kind: DocumentKind, snapshot: Snapshot, references: References) -> Document:
    # Some public clients read the tenant from `id`, other clients from `tenant_id`.
    context: Document = {"tenant": {"id": snapshot.tenant_id, "tenant_id": snapshot.tenant_id}}
    root = snapshot.now.root or snapshot.before.root or {}
    connection = root if kind.name == "connection" else references.get("connection_id", {}).get(root.get("connection_id") or "")
    if connection:
        context["connection"] = {name: connection[name] for name in ("id", "name", "strategy")}
    current = current_change_context()
    if current.client is not None:
        context["client"] = current.client.document()
    if current.request is not None:
        context["request"] = current.request
    return context
