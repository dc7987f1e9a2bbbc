"""Create, change and delete groups, and change their members and roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import Connection, Group, GroupMember, GroupRole, Job, Organization, OrganizationGroupRole
from identity.services.deletions import deletion_of, refuse_if_being_deleted
from identity.services.failures import Invalid, NotFound, NotSupported
from identity.services.relations import delete_relations
from identity.services.roles import roles_named
from identity.services.saving import validated_save
from identity.services.tenant_life import refuse_in_closing_tenant
from identity.services.users import locked_users

EDITABLE = ("name", "external_id", "description")


@unit_of_work
def create_group(
    *, tenant_id: str, name: str, type: str = "tenant", connection_id: str | None = None, organization_id: str | None = None, **fields: Any
) -> Group:
    """Create a group of a connection, an organization or the tenant. Raises `Invalid`, `NotFound` or `AlreadyExists`.

    Names are unique within one owner.
    """
    _refuse_unknown(fields)
    owners = {"connection": connection_id, "organization": organization_id}
    if type not in Group.Type.values:
        raise Invalid({"type": [f"One of {', '.join(Group.Type.values)}."]})
    if any((owner is not None) != (name == type) for name, owner in owners.items()):
        raise Invalid({"type": ["A group of a connection needs connection_id, and a group of an organization needs organization_id."]})
    _refuse_closed_owner(Connection.objects.of(tenant_id), connection_id, "The connection does not exist.")
    _refuse_closed_owner(Organization.objects.of(tenant_id), organization_id, "No organization found by that id or name.")
    refuse_in_closing_tenant(tenant_id)
    group = Group(tenant_id=tenant_id, name=name, type=type, connection_id=connection_id, organization_id=organization_id, **fields)
    validated_save(group)
    return group


@unit_of_work
def update_group(*, tenant_id: str, group_id: str, changes: dict[str, Any]) -> Group:
    """Replace name, external id or description. Raises `NotFound`, `Invalid` or `AlreadyExists`."""
    group = locked_group(tenant_id=tenant_id, group_id=group_id)
    _refuse_unknown(changes)
    for name, value in changes.items():
        setattr(group, name, value)
    if changes:
        validated_save(group, fields=list(changes))
    return group


def _empty(group: Group, limit: int) -> int:
    """Delete up to `limit` rows of the group: its memberships in other groups, its members and its roles."""
    deleted = delete_relations(tenant_id=group.tenant_id, nested_group=group, limit=limit)
    return deleted or delete_relations(tenant_id=group.tenant_id, group=group, limit=limit)


def _count(group: Group) -> dict[str, int]:
    here = group.tenant_id
    return {
        "members": GroupMember.objects.of(here).filter(group=group).count(),
        "memberships in other groups": GroupMember.objects.of(here).filter(nested_group=group).count(),
        "roles": GroupRole.objects.of(here).filter(group=group).count(),
        "roles in organizations": OrganizationGroupRole.objects.of(here).filter(group=group).count(),
    }


def empty_groups(groups: models.QuerySet[Group], limit: int) -> int:
    """Delete up to `limit` rows of these groups and their dependents, group by group. Returns the number of deleted rows."""
    return GROUP_DELETION.next_of(groups, limit)


GROUP_DELETION = deletion_of(Group, Job.Type.GROUP_DELETION, missing="The group does not exist.", empty=_empty, count=_count)


def delete_group(*, tenant_id: str, group_id: str) -> Job | None:
    """Delete a group, after its members, its roles and its memberships in other groups. Raises `NotFound`.

    For a large group, returns the job that continues.
    """
    return GROUP_DELETION.start(tenant_id=tenant_id, key=group_id)


@unit_of_work
def add_group_members(*, tenant_id: str, group_id: str, user_ids: Sequence[str] = (), nested_ids: Sequence[str] = ()) -> None:
    """Add users and nested groups, all or none. Skips members that the group already has. Raises `NotFound` if a user or group is missing.

    Only groups of a connection can be nested; raises `NotSupported` for other groups.
    """
    users = locked_users(tenant_id=tenant_id, user_ids=user_ids)
    group = locked_group(tenant_id=tenant_id, group_id=group_id)
    for user in users:
        if not GroupMember.objects.of(tenant_id).filter(group=group, user=user).exists():
            GroupMember(tenant_id=tenant_id, group=group, user=user).save()
    nested = list(Group.objects.of(tenant_id).filter(pk__in=nested_ids).order_by("pk"))
    if len(nested) != len(set(nested_ids)):
        raise NotFound("The group does not exist.")
    for other in nested:
        refuse_if_being_deleted(other)
        if other.type != Group.Type.CONNECTION or other.pk == group.pk:
            raise NotSupported("Only another group of a connection can be a member.")
        if not GroupMember.objects.of(tenant_id).filter(group=group, nested_group=other).exists():
            GroupMember(tenant_id=tenant_id, group=group, nested_group=other).save()


@unit_of_work
def remove_group_members(*, tenant_id: str, group_id: str, member_ids: Sequence[str]) -> None:
    """Remove users and nested groups by id. Skips ids that are not members."""
    group = locked_group(tenant_id=tenant_id, group_id=group_id)
    members = GroupMember.objects.of(tenant_id).filter(group=group)
    for member in [*members.filter(user__user_id__in=member_ids), *members.filter(nested_group_id__in=member_ids)]:
        member.delete()


@unit_of_work
def assign_group_roles(*, tenant_id: str, group_id: str, role_ids: Sequence[str]) -> None:
    """Assign roles to every member of the group, all or none. Skips roles that the group already has. Raises `NotFound`."""
    group = locked_group(tenant_id=tenant_id, group_id=group_id)
    for role in roles_named(tenant_id=tenant_id, role_ids=role_ids):
        if not GroupRole.objects.of(tenant_id).filter(group=group, role=role).exists():
            GroupRole(tenant_id=tenant_id, group=group, role=role).save()


@unit_of_work
def remove_group_roles(*, tenant_id: str, group_id: str, role_ids: Sequence[str]) -> None:
    """Remove roles from the group. Skips roles that the group does not have."""
    group = locked_group(tenant_id=tenant_id, group_id=group_id)
    for row in GroupRole.objects.of(tenant_id).filter(group=group, role_id__in=role_ids).order_by("pk"):
        row.delete()


@unit_of_work
def assign_role_to_groups(*, tenant_id: str, role_id: str, group_ids: Sequence[str]) -> None:
    """Assign one role to groups, all or none. Skips groups that already have the role. Raises `NotFound`."""
    (role,) = roles_named(tenant_id=tenant_id, role_ids=[role_id])
    for group in _locked_groups(tenant_id, group_ids):
        if not GroupRole.objects.of(tenant_id).filter(group=group, role=role).exists():
            GroupRole(tenant_id=tenant_id, group=group, role=role).save()


@unit_of_work
def remove_role_from_groups(*, tenant_id: str, role_id: str, group_ids: Sequence[str]) -> None:
    """Remove one role from groups. Skips groups that do not have the role. Raises `NotFound` for an unknown role."""
    roles_named(tenant_id=tenant_id, role_ids=[role_id])
    rows = list(GroupRole.objects.of(tenant_id).filter(role_id=role_id, group_id__in=group_ids).order_by("group_id"))
    lock_rows(Group, [row.group_id for row in rows])
    for row in rows:
        row.delete()


def _locked_groups(tenant_id: str, group_ids: Sequence[str]) -> list[Group]:
    wanted = set(group_ids)
    groups = list(Group.objects.of(tenant_id).select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk"))
    if len(groups) != len(wanted):
        raise NotFound("The group does not exist.")
    for group in groups:
        refuse_if_being_deleted(group)
    return groups


def locked_group(*, tenant_id: str, group_id: str) -> Group:
    """Return the group with its row locked until the transaction ends. Raises `NotFound` or `BeingDeleted`."""
    group = Group.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=group_id).first()
    if group is None:
        raise NotFound("The group does not exist.")
    refuse_if_being_deleted(group)
    return group


def _refuse_closed_owner(rows: models.QuerySet[Any], key: str | None, missing: str) -> None:
    if key is None:
        return
    owner = rows.filter(pk=key).first()
    if owner is None:
        raise NotFound(missing)
    refuse_if_being_deleted(owner)


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in fields if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
