"""The documents of a group and of its members."""

from __future__ import annotations

from typing import Any

from foundation.timestamps import wire_time
from identity.models import Group, GroupMember

_OPTIONAL = ("external_id", "connection_id", "organization_id", "description")


def group_resource(group: Group) -> dict[str, Any]:
    """Return the group as the management interface shows it; its events show less."""
    optional = {name: getattr(group, name) for name in _OPTIONAL if getattr(group, name)}
    times = {"created_at": wire_time(group.created_at), "updated_at": wire_time(group.updated_at)}
    return {"id": group.pk, "name": group.name, "type": group.type, "tenant_name": group.tenant_id, **optional, **times}


def group_member_resource(member: GroupMember) -> dict[str, Any]:
    """Return a member, read with its user or group: here a nested group is called so, in events it is a connection's."""
    times = {"created_at": wire_time(member.created_at)}
    if member.user is not None:
        return {"id": member.user.user_id, "member_type": "user", "connection_id": member.user.connection_id, **times}
    nested = member.nested_group
    if nested is None:
        raise ValueError("A member is a user or a group.")
    owner = {"connection_id": nested.connection_id} if nested.connection_id else {}
    return {"id": nested.pk, "member_type": "group", "type": nested.type, **owner, **times}
