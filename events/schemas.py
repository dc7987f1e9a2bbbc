"""Closed schemas of event data, checked before an event is stored. Pure.

Public client libraries drop an event that does not fit their models, silently; so nothing that they would drop may
be stored. A schema names every field a type may have; fields are required unless marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any, str], None]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class SchemaViolation(ValueError):
    """The data of an event does not fit the schema of its type."""


@dataclass(frozen=True)
class Shape:
    """An object with exactly these fields."""

    required: dict[str, Check]
    optional: dict[str, Check]

    def __call__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise SchemaViolation(f"{path}: an object is expected.")
        for name in self.required:
            if name not in value:
                raise SchemaViolation(f"{path}.{name}: missing.")
        for name, member in value.items():
            check = self.required.get(name) or self.optional.get(name)
            if check is None:
                raise SchemaViolation(f"{path}.{name}: not a field of this object.")
            check(member, f"{path}.{name}")


def _kind(expected: type | tuple[type, ...], words: str) -> Check:
    def check(value: Any, path: str) -> None:
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise SchemaViolation(f"{path}: {words} is expected.")

    return check


text = _kind(str, "text")
switch = _kind(bool, "true or false")
whole = _kind(int, "a whole number")
mapping = _kind(dict, "an object")


def moment(value: Any, path: str) -> None:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise SchemaViolation(f"{path}: a time with milliseconds and Z is expected.")


def one_of(*values: str) -> Check:
    def check(value: Any, path: str) -> None:
        if value not in values:
            raise SchemaViolation(f"{path}: one of {', '.join(values)} is expected.")

    return check


def list_of(check: Check) -> Check:
    def check_list(value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise SchemaViolation(f"{path}: a list is expected.")
        for index, item in enumerate(value):
            check(item, f"{path}[{index}]")

    return check_list


_PROFILE_DATA = Shape(
    {},
    {
        "email": text,
        "email_verified": switch,
        "name": text,
        "nickname": text,
        "username": text,
        "given_name": text,
        "family_name": text,
        "picture": text,
        "phone_number": text,
        "phone_verified": switch,
    },
)
_IDENTITY = Shape({"connection": text, "user_id": text, "provider": text, "isSocial": switch}, {"profileData": _PROFILE_DATA})
_USER_OPTIONAL: dict[str, Check] = {
    "email": text,
    "email_verified": switch,
    "username": text,
    "phone_number": text,
    "phone_verified": switch,
    "name": text,
    "nickname": text,
    "given_name": text,
    "family_name": text,
    "picture": text,
    "app_metadata": mapping,
    "user_metadata": mapping,
    "multifactor": list_of(text),
    "last_ip": text,
    "last_login": moment,
    "logins_count": whole,
    "blocked": switch,
}
_USER_REQUIRED: dict[str, Check] = {"user_id": text, "created_at": moment, "updated_at": moment, "identities": list_of(_IDENTITY)}
_USER = Shape(_USER_REQUIRED, _USER_OPTIONAL)
_DELETED_USER = Shape({**_USER_REQUIRED, "deleted_at": moment}, _USER_OPTIONAL)
_CONNECTION = Shape(
    {"id": text, "name": text, "strategy": text},
    {
        "display_name": text,
        "options": mapping,
        "realms": list_of(text),
        "enabled_clients": list_of(text),
        "is_domain_connection": switch,
        "show_as_button": switch,
        "metadata": mapping,
        "authentication": mapping,
        "connected_accounts": mapping,
    },
)
_ORGANIZATION_REQUIRED: dict[str, Check] = {"id": text, "name": text}
_ORGANIZATION_OPTIONAL: dict[str, Check] = {"display_name": text, "metadata": mapping}
_BRANDING = Shape({}, {"logo_url": text, "colors": Shape({"primary": text, "page_background": text}, {})})
_ORGANIZATION = Shape(_ORGANIZATION_REQUIRED, {**_ORGANIZATION_OPTIONAL, "branding": _BRANDING})
_DELETED_ORGANIZATION = Shape(_ORGANIZATION_REQUIRED, _ORGANIZATION_OPTIONAL)
_NAMED_ORGANIZATION = Shape({"id": text, "name": text}, {})
_ID = Shape({"id": text}, {})
_NAMED_ROLE = Shape({"id": text, "name": text}, {})
_USER_ID = Shape({"user_id": text}, {})
_ACCESS_LEVEL = one_of("none", "readonly", "limited", "full")
_ORGANIZATION_CONNECTION = Shape(
    {"organization": _NAMED_ORGANIZATION, "connection": _ID},
    {
        "assign_membership_on_login": switch,
        "show_as_button": switch,
        "is_signup_enabled": switch,
        "is_enabled": switch,
        "organization_access_level": _ACCESS_LEVEL,
    },
)
_REMOVED_ORGANIZATION_CONNECTION = Shape({"organization": _NAMED_ORGANIZATION, "connection": _ID}, {})
_ORGANIZATION_MEMBER = Shape({"organization": _NAMED_ORGANIZATION, "user": _USER_ID}, {})
_ORGANIZATION_MEMBER_ROLE = Shape({"organization": _ID, "user": _USER_ID, "role": _NAMED_ROLE}, {})


def _group_reference(**further: Check) -> Check:
    """A group of one of the three types, which name their owner in a field of its own."""
    shapes = {
        "connection": Shape({"id": text, "type": text, "connection_id": text, **further}, {"external_id": text}),
        "organization": Shape({"id": text, "type": text, "organization_id": text, **further}, {"external_id": text}),
        "tenant": Shape({"id": text, "type": text, **further}, {"external_id": text}),
    }

    def check(value: Any, path: str) -> None:
        mapping(value, path)
        shape = shapes.get(value.get("type"))
        if shape is None:
            raise SchemaViolation(f"{path}.type: one of {', '.join(shapes)} is expected.")
        shape(value, path)

    return check


_GROUP = _group_reference()
_CREATED_GROUP = _group_reference(name=text, created_at=moment)
_WHOLE_GROUP = _group_reference(name=text, created_at=moment, updated_at=moment)


def _member(value: Any, path: str) -> None:
    mapping(value, path)
    nested = value.get("member_type") == "connection"
    shape = {"member_type": one_of("connection" if nested else "user"), "id": text}
    Shape({**shape, "type": text, "connection_id": text} if nested else shape, {})(value, path)


_GROUP_MEMBER = Shape({"group": _GROUP, "member": _member}, {})
_GROUP_ROLE = Shape({"group": _GROUP, "role": _NAMED_ROLE, "created_at": moment}, {})
_DELETED_GROUP_ROLE = Shape({"group": _GROUP, "role": _ID, "deleted_at": moment}, {})
_ORGANIZATION_GROUP_ROLE = Shape({"organization": _ID, "role": _NAMED_ROLE, "group": _GROUP, "created_at": moment}, {})
_DELETED_ORGANIZATION_GROUP_ROLE = Shape({"organization": _ID, "role": _ID, "group": _GROUP, "deleted_at": moment}, {})
_CONTEXT = Shape(
    {"tenant": Shape({"id": text, "tenant_id": text}, {})},
    {
        "client": Shape({"id": text, "name": text}, {"metadata": mapping}),
        "connection": Shape({"id": text, "name": text, "strategy": text}, {}),
        "request": Shape({"geo": mapping, "hostname": text, "ip": text, "method": text, "user_agent": text}, {"custom_domain": text}),
    },
)


def _data(shape: Check, previous: Check | None = None) -> Shape:
    return Shape({"object": shape, **({"previous_object": previous} if previous else {})}, {"context": _CONTEXT})


SCHEMAS: dict[str, Shape] = {
    "connection.created": _data(_CONNECTION),
    "connection.updated": _data(_CONNECTION, _CONNECTION),
    "connection.deleted": _data(_CONNECTION),
    "group.created": _data(_CREATED_GROUP),
    "group.updated": _data(_WHOLE_GROUP, _WHOLE_GROUP),
    "group.deleted": _data(_WHOLE_GROUP),
    "group.member.added": _data(_GROUP_MEMBER),
    "group.member.deleted": _data(_GROUP_MEMBER),
    "group.role.assigned": _data(_GROUP_ROLE),
    "group.role.deleted": _data(_DELETED_GROUP_ROLE, _GROUP_ROLE),
    "organization.created": _data(_ORGANIZATION),
    "organization.updated": _data(_ORGANIZATION, _ORGANIZATION),
    "organization.deleted": _data(_DELETED_ORGANIZATION),
    "organization.connection.added": _data(_ORGANIZATION_CONNECTION),
    "organization.connection.updated": _data(_ORGANIZATION_CONNECTION, _ORGANIZATION_CONNECTION),
    "organization.connection.removed": _data(_REMOVED_ORGANIZATION_CONNECTION),
    "organization.member.added": _data(_ORGANIZATION_MEMBER),
    "organization.member.deleted": _data(_ORGANIZATION_MEMBER),
    "organization.member.role.assigned": _data(_ORGANIZATION_MEMBER_ROLE),
    "organization.member.role.deleted": _data(_ORGANIZATION_MEMBER_ROLE),
    "organization.group.role.assigned": _data(_ORGANIZATION_GROUP_ROLE),
    "organization.group.role.deleted": _data(_DELETED_ORGANIZATION_GROUP_ROLE, _ORGANIZATION_GROUP_ROLE),
    "user.created": _data(_USER),
    "user.updated": _data(_USER, _USER),
    "user.deleted": _data(_DELETED_USER),
}


def check_data(event_type: str, data: Any) -> None:
    """Raise `SchemaViolation` unless `data` has exactly the fields that events of this type may have."""
    schema = SCHEMAS.get(event_type)
    if schema is None:
        raise SchemaViolation(f"{event_type}: no event of this type is recorded yet.")
    schema(data, "data")
