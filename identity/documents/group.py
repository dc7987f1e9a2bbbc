"""The documents of a group and of its members."""

from __future__ import annotations

from functools import partial
from typing import Any

from foundation.shapes import values
from identity.models import Group, GroupMember
from identity.shapes import GROUP, GROUP_MEMBER


def group_resource(group: Group) -> dict[str, Any]:
    """Return the group as the management interface shows it. Events of the group have fewer fields."""
    return values(partial(getattr, group), GROUP.names, tenant_name=group.tenant_id)


def group_member_resource(member: GroupMember) -> dict[str, Any]:
    """Return a member that was read with its user or group.

    In this document, the type of a nested group is `group`; in events the type differs.
    """
    user, nested = member.user, member.nested_group
    if user is not None:
        shown = {"id": user.user_id, "member_type": "user", "type": None, "connection_id": user.connection_id}
    elif nested is not None:
        shown = {"id": nested.pk, "member_type": "group", "type": nested.type, "connection_id": nested.connection_id}
    else:
        raise ValueError("A member is a user or a group.")
    return values(partial(getattr, member), GROUP_MEMBER.names, **shown)
