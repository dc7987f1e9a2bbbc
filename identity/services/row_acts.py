"""Bulk acts of staff on rows of identity. Each act calls the service that also handles a single row."""

from __future__ import annotations

from identity.models import (
    Connection,
    CustomDomain,
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    User,
    UserRole,
)
from identity.services import connections, domains, groups, memberships, organizations, roles, users
from identity.services.bulk_acts import BulkAct, deletion_of_rows, register

_CHANGE_USER = "identity.change_user"

BLOCK_USERS = register(
    BulkAct("block", User, "Block selected users", "blocked", _CHANGE_USER,
            lambda row: users.block_user(tenant_id=row.tenant_id, user_id=row.user_id))
)  # fmt: skip
UNBLOCK_USERS = register(
    BulkAct("unblock", User, "Unblock selected users", "unblocked", _CHANGE_USER,
            lambda row: users.unblock_user(tenant_id=row.tenant_id, user_id=row.user_id))
)  # fmt: skip


def _delete_user(row: User) -> None:
    users.delete_user(tenant_id=row.tenant_id, user_id=row.user_id)


def _remove_domain(row: CustomDomain) -> None:
    domains.remove_domain(tenant_id=row.tenant_id, domain_id=row.pk, is_by_operator=True)


def _remove_connection(row: OrganizationConnection) -> None:
    memberships.remove_connection(tenant_id=row.tenant_id, organization_id=row.organization_id, connection_id=row.connection_id)


def _remove_organization_member(row: OrganizationMember) -> None:
    memberships.remove_members(tenant_id=row.tenant_id, organization_id=row.organization_id, user_ids=[row.user.user_id])


def _remove_member_role(row: OrganizationMemberRole) -> None:
    memberships.remove_member_roles(
        tenant_id=row.tenant_id, organization_id=row.organization_id, user_id=row.user.user_id, role_ids=[row.role_id]
    )


def _remove_organization_group_role(row: OrganizationGroupRole) -> None:
    memberships.remove_organization_group_roles(
        tenant_id=row.tenant_id, organization_id=row.organization_id, group_id=row.group_id, role_ids=[row.role_id]
    )


def _remove_group_member(row: GroupMember) -> None:
    member = row.user.user_id if row.user is not None else str(row.nested_group_id)
    groups.remove_group_members(tenant_id=row.tenant_id, group_id=row.group_id, member_ids=[member])


def _remove_group_role(row: GroupRole) -> None:
    groups.remove_group_roles(tenant_id=row.tenant_id, group_id=row.group_id, role_ids=[row.role_id])


def _remove_user_role(row: UserRole) -> None:
    roles.remove_user_roles(tenant_id=row.tenant_id, user_id=row.user.user_id, role_ids=[row.role_id])


deletion_of_rows(User, _delete_user)
deletion_of_rows(Connection, lambda row: connections.delete_connection(tenant_id=row.tenant_id, connection_id=row.pk))
deletion_of_rows(Organization, lambda row: organizations.delete_organization(tenant_id=row.tenant_id, organization_id=row.pk))
deletion_of_rows(Group, lambda row: groups.delete_group(tenant_id=row.tenant_id, group_id=row.pk))
deletion_of_rows(Role, lambda row: roles.delete_role(tenant_id=row.tenant_id, role_id=row.pk))
deletion_of_rows(CustomDomain, _remove_domain, for_operators_only=True)
deletion_of_rows(OrganizationConnection, _remove_connection)
deletion_of_rows(OrganizationMember, _remove_organization_member)
deletion_of_rows(OrganizationMemberRole, _remove_member_role)
deletion_of_rows(OrganizationGroupRole, _remove_organization_group_role)
deletion_of_rows(GroupMember, _remove_group_member)
deletion_of_rows(GroupRole, _remove_group_role)
deletion_of_rows(UserRole, _remove_user_role)
