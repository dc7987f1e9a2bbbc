"""The only list of event types, with the row change that each type represents. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Spec, "Event types". The text of the spec says 24 types, but its table has 25 rows (docs/adr/0001).
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
    """A table, other than that of the root, with rows that belong to a document. Its column `document_column` contains the key of the
    root."""

    table: str
    document_column: str
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reference:
    """A column that refers to a row of another table. `columns` are the columns of this row that documents show."""

    column: str
    table: str
    columns: tuple[str, ...]
    key_type: str = "text"


@dataclass(frozen=True)
class Parent:
    """The parent of a relation: events of the relation and of its parent are delivered in one order.

    `name` is the kind of the parent, `table` is its table, and `column` is the column of the relation that refers to the parent.
    """

    name: str
    table: str
    column: str


@dataclass(frozen=True)
class DocumentKind:
    """A recorded resource or relation: its table, the types of its events, and the fields whose change alone records no event (`silent`).

    Every table has the key column `id`; `key_type` is the SQL type of this column. `identity` lists the paths of the document fields by
    which consumers identify the resource. `updated` is None for a relation whose changes are not events. `unshown` lists columns of the
    root that no document shows but whose change is an event.
    """

    name: str
    table: str
    key_type: str
    identity: tuple[str, ...]
    created: str
    deleted: str
    updated: str | None = None
    silent: frozenset[str] = frozenset()
    unshown: frozenset[str] = frozenset()
    parts: tuple[Part, ...] = ()
    references: tuple[Reference, ...] = ()
    parent: Parent | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table, *(part.table for part in self.parts))

    def root_of(self, document: dict[str, Any]) -> str:
        """Return `<kind>:<id>` of the parent, or of the document itself. Events with the same root are delivered in order."""
        if self.parent is not None:
            return f"{self.parent.name}:{document[self.parent.name]['id']}"
        return f"{self.name}:{document[self.identity[0]]}"


_TIMES = frozenset({"created_at", "updated_at"})
# Documents do not show that a deletion is in progress. The service records the event when it deletes the row.
_DELETION = frozenset({"deletion_started_at"})
_CONNECTION = Reference("connection_id", "identity_connection", ("id", "name", "strategy"))
_ORGANIZATION = Reference("organization_id", "identity_organization", ("id", "name"))
_GROUP = Reference("group_id", "identity_group", ("id", "type", "connection_id", "organization_id", "external_id"))
_NESTED_GROUP = Reference("nested_group_id", "identity_group", _GROUP.columns)
_ROLE = Reference("role_id", "identity_role", ("id", "name"))
_USER = Reference("user_id", "identity_user", ("id", "user_id"), "bigint")
_IN_ORGANIZATION = Parent("organization", "identity_organization", "organization_id")
_IN_GROUP = Parent("group", "identity_group", "group_id")

# Parents before children: the sweep records creations in this order and deletions in reverse.
DOCUMENT_KINDS: tuple[DocumentKind, ...] = (
    DocumentKind(
        name="connection",
        table="identity_connection",
        key_type="text",
        identity=("id",),
        created="connection.created",
        updated="connection.updated",
        deleted="connection.deleted",
        silent=_TIMES | _DELETION,
        # Documents do not show secrets, but a changed secret is an event.
        unshown=frozenset({"sealed_options"}),
    ),
    DocumentKind(
        name="user",
        table="identity_user",
        key_type="bigint",
        identity=("user_id",),
        created="user.created",
        updated="user.updated",
        deleted="user.deleted",
        # Spec, "Event-related rules": a login does not change the profile.
        silent=_TIMES | {"last_ip", "last_login", "logins_count", "last_password_reset", "first_key"},
        parts=(Part("identity_linkedidentity", "user_id", frozenset({"created_at"})),),
        references=(_CONNECTION,),
    ),
    DocumentKind(
        name="organization",
        table="identity_organization",
        key_type="text",
        identity=("id",),
        created="organization.created",
        updated="organization.updated",
        deleted="organization.deleted",
        # No field of the event shows the column `extras`.
        silent=_TIMES | _DELETION | {"extras"},
    ),
    DocumentKind(
        name="group",
        table="identity_group",
        key_type="text",
        identity=("id",),
        created="group.created",
        updated="group.updated",
        deleted="group.deleted",
        # No field of the event shows the column `description`.
        silent=_TIMES | _DELETION | {"description"},
    ),
    DocumentKind(
        name="organization.connection",
        table="identity_organizationconnection",
        key_type="bigint",
        identity=("organization.id", "connection.id"),
        created="organization.connection.added",
        updated="organization.connection.updated",
        deleted="organization.connection.removed",
        silent=_TIMES | {"organization_connection_name", "organization_member_access_level"},
        references=(_ORGANIZATION, _CONNECTION),
        parent=_IN_ORGANIZATION,
    ),
    DocumentKind(
        name="organization.member",
        table="identity_organizationmember",
        key_type="bigint",
        identity=("organization.id", "user.user_id"),
        created="organization.member.added",
        deleted="organization.member.deleted",
        silent=_TIMES,
        references=(_ORGANIZATION, _USER),
        parent=_IN_ORGANIZATION,
    ),
    DocumentKind(
        name="group.member",
        table="identity_groupmember",
        key_type="bigint",
        identity=("group.id", "member.id"),
        created="group.member.added",
        deleted="group.member.deleted",
        silent=_TIMES,
        references=(_GROUP, _NESTED_GROUP, _USER),
        parent=_IN_GROUP,
    ),
    DocumentKind(
        name="group.role",
        table="identity_grouprole",
        key_type="bigint",
        identity=("group.id", "role.id"),
        created="group.role.assigned",
        deleted="group.role.deleted",
        silent=_TIMES,
        references=(_GROUP, _ROLE),
        parent=_IN_GROUP,
    ),
    DocumentKind(
        name="organization.member.role",
        table="identity_organizationmemberrole",
        key_type="bigint",
        identity=("organization.id", "user.user_id", "role.id"),
        created="organization.member.role.assigned",
        deleted="organization.member.role.deleted",
        silent=_TIMES,
        references=(_ORGANIZATION, _USER, _ROLE),
        parent=_IN_ORGANIZATION,
    ),
    DocumentKind(
        name="organization.group.role",
        table="identity_organizationgrouprole",
        key_type="bigint",
        identity=("organization.id", "group.id", "role.id"),
        created="organization.group.role.assigned",
        deleted="organization.group.role.deleted",
        silent=_TIMES,
        references=(_ORGANIZATION, _GROUP, _ROLE),
        parent=_IN_ORGANIZATION,
    ),
)


@dataclass(frozen=True)
class Change:
    """One event to record: its type, its document, and the document before the change, if it existed."""

    type: str
    document: dict[str, Any]
    previous: dict[str, Any] | None = None


def changes_between(
    kind: DocumentKind, before: dict[str, Any] | None, after: dict[str, Any] | None, *, has_unshown_change: bool = False
) -> list[Change]:
    """Return the events for the change from the document `before` to the document `after`; an empty list if no visible field differs.

    `has_unshown_change` means that an `unshown` column differs. If the fields in `identity` change, consumers get a deletion and
    a creation.
    """
    if before is None:
        return [Change(kind.created, after)] if after is not None else []
    if after is None:
        return [Change(kind.deleted, before)]
    if _identity(kind, before) != _identity(kind, after):
        return [Change(kind.deleted, before), Change(kind.created, after)]
    if kind.updated is None or not (has_unshown_change or _visible(kind, before) != _visible(kind, after)):
        return []
    return [Change(kind.updated, after, before)]


def _identity(kind: DocumentKind, document: dict[str, Any]) -> list[Any]:
    found = []
    for path in kind.identity:
        value: Any = document
        for name in path.split("."):
            value = value[name]
        found.append(value)
    return found


def _visible(kind: DocumentKind, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in kind.silent}
