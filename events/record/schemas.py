"""Closed schemas of event data, checked before an event is stored. Pure.

Public client libraries drop an event that does not fit their models, silently; so nothing that they would drop may
be stored. A schema names every field a type may have; fields are required unless marked.
"""

from __future__ import annotations

from typing import Any

from foundation.shapes import ListOf, OneOf, Rule, SchemaViolation, Shape, Variants, mapping, moment, switch, text, whole

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
_USER_OPTIONAL: dict[str, Rule] = {
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
    "multifactor": ListOf(text),
    "last_ip": text,
    "last_login": moment,
    "logins_count": whole,
    "blocked": switch,
}
_USER_REQUIRED: dict[str, Rule] = {"user_id": text, "created_at": moment, "updated_at": moment, "identities": ListOf(_IDENTITY)}
_USER = Shape(_USER_REQUIRED, _USER_OPTIONAL)
_DELETED_USER = Shape({**_USER_REQUIRED, "deleted_at": moment}, _USER_OPTIONAL)
_CONNECTION = Shape(
    {"id": text, "name": text, "strategy": text},
    {
        "display_name": text,
        "options": mapping,
        "realms": ListOf(text),
        "enabled_clients": ListOf(text),
        "is_domain_connection": switch,
        "show_as_button": switch,
        "metadata": mapping,
        "authentication": mapping,
        "connected_accounts": mapping,
    },
)
_ORGANIZATION_REQUIRED: dict[str, Rule] = {"id": text, "name": text}
_ORGANIZATION_OPTIONAL: dict[str, Rule] = {"display_name": text, "metadata": mapping}
_BRANDING = Shape({}, {"logo_url": text, "colors": Shape({"primary": text, "page_background": text}, {})})
_ORGANIZATION = Shape(_ORGANIZATION_REQUIRED, {**_ORGANIZATION_OPTIONAL, "branding": _BRANDING})
_DELETED_ORGANIZATION = Shape(_ORGANIZATION_REQUIRED, _ORGANIZATION_OPTIONAL)
_NAMED_ORGANIZATION = Shape({"id": text, "name": text}, {})
_ID = Shape({"id": text}, {})
_NAMED_ROLE = Shape({"id": text, "name": text}, {})
_USER_ID = Shape({"user_id": text}, {})
_ACCESS_LEVEL = OneOf(("none", "readonly", "limited", "full"))
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


def _group_reference(**further: Rule) -> Variants:
    """A group of one of the three types, which name their owner in a field of its own."""
    return Variants(
        "type",
        {
            "connection": Shape({"id": text, "type": text, "connection_id": text, **further}, {"external_id": text}),
            "organization": Shape({"id": text, "type": text, "organization_id": text, **further}, {"external_id": text}),
            "tenant": Shape({"id": text, "type": text, **further}, {"external_id": text}),
        },
    )


_GROUP = _group_reference()
_CREATED_GROUP = _group_reference(name=text, created_at=moment)
_WHOLE_GROUP = _group_reference(name=text, created_at=moment, updated_at=moment)


_MEMBER = Variants(
    "member_type",
    {
        "user": Shape({"member_type": text, "id": text}, {}),
        "connection": Shape({"member_type": text, "id": text, "type": text, "connection_id": text}, {}),
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
        "connection": Shape({"id": text, "name": text, "strategy": text}, {}),
        "request": Shape({"geo": mapping, "hostname": text, "ip": text, "method": text, "user_agent": text}, {"custom_domain": text}),
    },
)


def _data(shape: Rule, previous: Rule | None = None) -> Shape:
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
