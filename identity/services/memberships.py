"""Relations of an organization: members, their roles, connections, and the roles of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foundation.database.transactions import unit_of_work
from identity.models import (
    Connection,
    Group,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
)
from identity.services.deletions import refuse_if_being_deleted
from identity.services.failures import Invalid, NotFound
from identity.services.organizations import create_organization, locked_organization
from identity.services.roles import roles_named
from identity.services.saving import validated_save
from identity.services.users import locked_users, users_named

CONNECTION_FLAGS = (
    "assign_membership_on_login",
    "show_as_button",
    "is_signup_enabled",
    "is_enabled",
    "organization_connection_name",
    "organization_access_level",
    "organization_member_access_level",
)


@unit_of_work
def create_connected_organization(*, tenant_id: str, name: str, connections: Sequence[dict[str, Any]], **fields: Any) -> Organization:
    """Create an organization with its connections, in the given order, all or nothing. Raises the errors of both steps."""
    organization = create_organization(tenant_id=tenant_id, name=name, **fields)
    for flags in connections:
        add_connection(tenant_id=tenant_id, organization_id=organization.pk, **flags)
    return organization


@unit_of_work
def add_members(*, tenant_id: str, organization_id: str, user_ids: Sequence[str]) -> None:
    """Add users as members, all or none. Skips users that already are members. Raises `NotFound` if a user is missing."""
    users = locked_users(tenant_id=tenant_id, user_ids=user_ids)
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    for user in users:
        if not OrganizationMember.objects.of(tenant_id).filter(organization=organization, user=user).exists():
            OrganizationMember(tenant_id=tenant_id, organization=organization, user=user).save()


@unit_of_work
def remove_members(*, tenant_id: str, organization_id: str, user_ids: Sequence[str]) -> None:
    """Delete memberships, each after its roles. Skips users that are not members."""
    locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    of_users = {"organization_id": organization_id, "user__user_id__in": user_ids}
    for role in OrganizationMemberRole.objects.of(tenant_id).filter(**of_users).order_by("pk"):
        role.delete()
    for member in OrganizationMember.objects.of(tenant_id).filter(**of_users).order_by("pk"):
        member.delete()


@unit_of_work
def assign_member_roles(*, tenant_id: str, organization_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Assign roles to a member in the organization, all or none. Skips roles that the member already has.

    Raises `NotFound` if organization, user or role is missing, and `NotSupported` for a role of another organization. Raises `Invalid`
    for a user that is not a member: a role without a membership would be in no event.
    """
    (user,) = locked_users(tenant_id=tenant_id, user_ids=[user_id])
    locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    roles = roles_named(tenant_id=tenant_id, role_ids=role_ids, organization_id=organization_id)
    member = OrganizationMember.objects.of(tenant_id).filter(organization_id=organization_id, user=user).first()
    if member is None:
        raise Invalid({"user_id": ["The user is not a member of the organization."]})
    for role in roles:
        if not member.roles.filter(role=role).exists():
            OrganizationMemberRole(
                tenant_id=tenant_id, organization_id=organization_id, member=member, user_id=member.user_id, role=role
            ).save()


@unit_of_work
def remove_member_roles(*, tenant_id: str, organization_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Remove roles from a member. Skips roles that the member does not have. Raises `NotFound` for an unknown organization or user."""
    locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    (user,) = users_named(tenant_id=tenant_id, user_ids=[user_id])
    rows = OrganizationMemberRole.objects.of(tenant_id).filter(organization_id=organization_id, user=user, role_id__in=role_ids)
    for row in rows.order_by("pk"):
        row.delete()


@unit_of_work
def add_connection(*, tenant_id: str, organization_id: str, connection_id: str, **flags: Any) -> OrganizationConnection:
    """Allow logins to the organization through a connection.

    Raises `NotFound`, `Invalid`, or `AlreadyExists` if the organization already has the connection.
    """
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    _refuse_unknown(flags)
    connection = Connection.objects.of(tenant_id).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    refuse_if_being_deleted(connection)
    row = OrganizationConnection(tenant_id=tenant_id, organization=organization, connection=connection, **flags)
    _check_signup(row)
    validated_save(row)
    return row


@unit_of_work
def update_organization_connection(
    *, tenant_id: str, organization_id: str, connection_id: str, changes: dict[str, Any]
) -> OrganizationConnection:
    """Replace the named flags. Raises `NotFound` or `Invalid`."""
    row = locked_organization_connection(tenant_id=tenant_id, organization_id=organization_id, connection_id=connection_id)
    _refuse_unknown(changes)
    for name, value in changes.items():
        setattr(row, name, value)
    _check_signup(row)
    if changes:
        validated_save(row)
    return row


@unit_of_work
def remove_connection(*, tenant_id: str, organization_id: str, connection_id: str) -> None:
    """Remove a connection from an organization. Raises `NotFound`."""
    locked_organization_connection(tenant_id=tenant_id, organization_id=organization_id, connection_id=connection_id).delete()


@unit_of_work
def assign_organization_group_roles(*, tenant_id: str, organization_id: str, group_id: str, role_ids: Sequence[str]) -> None:
    """Assign roles in the organization to the members of a group, all or none. Skips roles that the group already has.

    Raises `NotFound`.
    """
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    group = _group(tenant_id, group_id)
    for role in roles_named(tenant_id=tenant_id, role_ids=role_ids, organization_id=organization_id):
        if not OrganizationGroupRole.objects.of(tenant_id).filter(organization=organization, group=group, role=role).exists():
            OrganizationGroupRole(tenant_id=tenant_id, organization=organization, group=group, role=role).save()


@unit_of_work
def remove_organization_group_roles(*, tenant_id: str, organization_id: str, group_id: str, role_ids: Sequence[str]) -> None:
    """Remove roles in the organization from a group. Skips roles that the group does not have."""
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    group = _group(tenant_id, group_id)
    rows = OrganizationGroupRole.objects.of(tenant_id).filter(organization=organization, group=group, role_id__in=role_ids)
    for row in rows.order_by("pk"):
        row.delete()


def locked_organization_connection(*, tenant_id: str, organization_id: str, connection_id: str) -> OrganizationConnection:
    """Return a connection of an organization, with the organization locked until the transaction ends. Raises `NotFound`."""
    locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    rows = OrganizationConnection.objects.of(tenant_id).select_related("connection")
    row = rows.filter(organization_id=organization_id, connection_id=connection_id).first()
    if row is None:
        raise NotFound("No connection found by that id.")
    return row


def _group(tenant_id: str, group_id: str) -> Group:
    group = Group.objects.of(tenant_id).filter(pk=group_id).first()
    if group is None:
        raise NotFound("The group does not exist.")
    refuse_if_being_deleted(group)
    return group


def _check_signup(row: OrganizationConnection) -> None:
    """Refuse sign-up unless the connection is a database and makes new users members of the organization."""
    if row.is_signup_enabled and not (row.connection.is_database and row.assign_membership_on_login):
        raise Invalid({"is_signup_enabled": ["Needs a database connection, and assign_membership_on_login must be true."]})


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in fields if name not in CONNECTION_FLAGS}
    if unknown:
        raise Invalid(unknown)
