"""Every event type, and which change of which row it stands for. The only list. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Spec, "Event types". The document counts 24; its table has 25 rows (docs/adr/0001).
EVENT_TYPES: tuple[str, ...] = (
    "connection.created",
    "connection.deleted",
    "connection.updated",
    "group.created",
    "group.deleted",
    "group.updated",
    "group.member.added",
    "group.member.deleted",
    "group.role.assigned",
    "group.role.deleted",
    "organization.created",
    "organization.deleted",
    "organization.updated",
    "organization.connection.added",
    "organization.connection.removed",
    "organization.connection.updated",
    "organization.group.role.assigned",
    "organization.group.role.deleted",
    "organization.member.added",
    "organization.member.deleted",
    "organization.member.role.assigned",
    "organization.member.role.deleted",
    "user.created",
    "user.updated",
    "user.deleted",
)


@dataclass(frozen=True)
class Part:
    """A further table whose rows are shown inside a document; `document_column` holds the document's key."""

    table: str
    key_column: str
    document_column: str
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class DocumentKind:
    """A resource whose changes are events: its tables, the types of its changes, and the fields that alone are none.

    `key_type` is the SQL type of the root's key. `identity_field` is the document field by which consumers know the
    resource. `references` pairs a column of the
    root or a part with the table it points to, whose rows the document needs.
    """

    name: str
    table: str
    key_column: str
    key_type: str
    identity_field: str
    created: str
    updated: str
    deleted: str
    silent: frozenset[str] = frozenset()
    parts: tuple[Part, ...] = ()
    references: tuple[tuple[str, str], ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table, *(part.table for part in self.parts))


# Parents before children: the sweep records creations in this order and deletions in the opposite one.
DOCUMENT_KINDS: tuple[DocumentKind, ...] = (
    DocumentKind(
        name="connection",
        table="identity_connection",
        key_column="id",
        key_type="text",
        identity_field="id",
        created="connection.created",
        updated="connection.updated",
        deleted="connection.deleted",
        # Secrets of a connection are in no document.
        silent=frozenset({"sealed_options", "created_at", "updated_at"}),
    ),
    DocumentKind(
        name="user",
        table="identity_user",
        key_column="id",
        key_type="bigint",
        identity_field="user_id",
        created="user.created",
        updated="user.updated",
        deleted="user.deleted",
        # Document, "Event-related rules": a login is no profile change.
        silent=frozenset({"last_ip", "last_login", "logins_count", "last_password_reset", "created_at", "updated_at"}),
        parts=(Part("identity_linkedidentity", "id", "user_id", frozenset({"created_at"})),),
        references=(("connection_id", "identity_connection"),),
    ),
)


@dataclass(frozen=True)
class Change:
    """One event to record: its type, the document it shows, and the document before the change where there was one."""

    type: str
    object: dict[str, Any]
    previous: dict[str, Any] | None = None


def changes_between(kind: DocumentKind, before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[Change]:
    """Return the events that lead from one document to the other: none when nothing visible differs.

    A resource that changed the id consumers know it by is, to them, a deletion and a creation.
    """
    if before is None:
        return [Change(kind.created, after)] if after is not None else []
    if after is None:
        return [Change(kind.deleted, before)]
    if before[kind.identity_field] != after[kind.identity_field]:
        return [Change(kind.deleted, before), Change(kind.created, after)]
    if _visible(kind, before) == _visible(kind, after):
        return []
    return [Change(kind.updated, after, before)]


def _visible(kind: DocumentKind, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in kind.silent}
