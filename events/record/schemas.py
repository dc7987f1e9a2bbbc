"""Closed schemas of event data, checked before an event is stored. Pure.

Public client libraries silently drop an event that does not fit their models. The check refuses to store such an event. A schema
lists every field that a type may have; a field is required unless the schema marks it as optional.
"""

from __future__ import annotations

from typing import Any

from foundation.shapes import Rule, SchemaViolation, Shape, Variants, mapping, moment, text
from identity.shapes import CONNECTION, GROUP, GROUP_MEMBER, ORGANIZATION, ORGANIZATION_CONNECTION, ROLE, USER

_NAMED_ORGANIZATION = ORGANIZATION.part("id", "name")
_ID = ORGANIZATION.part("id")
_NAMED_ROLE = ROLE.part("id", "name")
_USER_ID = USER.part("user_id")
_REMOVED_ORGANIZATION_CONNECTION = Shape({"organization": _NAMED_ORGANIZATION, "connection": _ID}, {})
_ORGANIZATION_CONNECTION = Shape(_REMOVED_ORGANIZATION_CONNECTION.required, ORGANIZATION_CONNECTION.shape().optional)
_ORGANIZATION_MEMBER = Shape({"organization": _NAMED_ORGANIZATION, "user": _USER_ID}, {})
_ORGANIZATION_MEMBER_ROLE = Shape({"organization": _ID, "user": _USER_ID, "role": _NAMED_ROLE}, {})


def _group(*further: str) -> Variants:
    """Return the schema of a group. A group of a connection and a group of an organization have different fields for the owner; a group of
    the whole tenant has no such field.
    """
    owners: dict[str, tuple[str, ...]] = {"connection": ("connection_id",), "organization": ("organization_id",), "tenant": ()}
    return Variants("type", {name: GROUP.part("id", "type", *owner, *further, optional=("external_id",)) for name, owner in owners.items()})


_GROUP = _group()
_CREATED_GROUP = _group("name", "created_at")
_WHOLE_GROUP = _group("name", "created_at", "updated_at")
_MEMBER = Variants(
    "member_type",
    {
        "user": GROUP_MEMBER.part("member_type", "id"),
        "connection": GROUP_MEMBER.part("member_type", "id", "type", "connection_id"),
    },
)
_GROUP_MEMBER = Shape({"group": _GROUP, "member": _MEMBER}, {})
_GROUP_ROLE = Shape({"group": _GROUP, "role": _NAMED_ROLE, "created_at": moment}, {})
_DELETED_GROUP_ROLE = Shape({"group": _GROUP, "role": _ID, "deleted_at": moment}, {})
_ORGANIZATION_GROUP_ROLE = Shape({"organization": _ID, "role": _NAMED_ROLE, "group": _GROUP, "created_at": moment}, {})
_DELETED_ORGANIZATION_GROUP_ROLE = Shape({"organization": _ID, "role": _ID, "group": _GROUP, "deleted_at": moment}, {})
_CONTEXT = Shape(
    {"tenant": Shape({"id": text, "tenant_id": text}, {})},
    {
        "client": Shape({"id": text, "name": text, "metadata": mapping}, {}),
        "connection": CONNECTION.part("id", "name", "strategy"),
        "request": Shape({"geo": mapping, "hostname": text, "ip": text, "method": text, "user_agent": text}, {"custom_domain": text}),
    },
)


def _data(shape: Rule, previous: Rule | None = None) -> Shape:
    return Shape({"object": shape, **({"previous_object": previous} if previous else {})}, {"context": _CONTEXT})


SCHEMAS: dict[str, Shape] = {
    "connection.created": _data(CONNECTION.shape()),
    "connection.updated": _data(CONNECTION.shape(), CONNECTION.shape()),
    "connection.deleted": _data(CONNECTION.shape()),
    "group.created": _data(_CREATED_GROUP),
    "group.updated": _data(_WHOLE_GROUP, _WHOLE_GROUP),
    "group.deleted": _data(_WHOLE_GROUP),
    "group.member.added": _data(_GROUP_MEMBER),
    "group.member.deleted": _data(_GROUP_MEMBER),
    "group.role.assigned": _data(_GROUP_ROLE),
    "group.role.deleted": _data(_DELETED_GROUP_ROLE, _GROUP_ROLE),
    "organization.created": _data(ORGANIZATION.shape()),
    "organization.updated": _data(ORGANIZATION.shape(), ORGANIZATION.shape()),
    "organization.deleted": _data(ORGANIZATION.shape(without="branding")),
    "organization.connection.added": _data(_ORGANIZATION_CONNECTION),
    "organization.connection.updated": _data(_ORGANIZATION_CONNECTION, _ORGANIZATION_CONNECTION),
    "organization.connection.removed": _data(_REMOVED_ORGANIZATION_CONNECTION),
    "organization.member.added": _data(_ORGANIZATION_MEMBER),
    "organization.member.deleted": _data(_ORGANIZATION_MEMBER),
    "organization.member.role.assigned": _data(_ORGANIZATION_MEMBER_ROLE),
    "organization.member.role.deleted": _data(_ORGANIZATION_MEMBER_ROLE),
    "organization.group.role.assigned": _data(_ORGANIZATION_GROUP_ROLE),
    "organization.group.role.deleted": _data(_DELETED_ORGANIZATION_GROUP_ROLE, _ORGANIZATION_GROUP_ROLE),
    "user.created": _data(USER.shape()),
    "user.updated": _data(USER.shape(), USER.shape()),
    "user.deleted": _data(USER.shape(deleted_at=moment)),
}


def check_data(event_type: str, data: Any) -> None:
    """Raise `SchemaViolation` if `data` has a field that the schema of the type does not list, or lacks a required field."""
    schema = SCHEMAS.get(event_type)
    if schema is None:
        raise SchemaViolation(f"{event_type}: the service records no events of this type.")
    schema(data, "data")
