"""Create, change and delete roles, and assign them to users for the whole tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from foundation.database.transactions import unit_of_work
from identity.models import GroupRole, Job, Organization, OrganizationGroupRole, OrganizationMemberRole, Role, UserRole
from identity.services.deletions import deletion_of, refuse_if_being_deleted
from identity.services.failures import Invalid, NotFound, NotSupported
from identity.services.relations import delete_relations
from identity.services.saving import validated_save
from identity.services.tenant_life import refuse_in_closing_tenant
from identity.services.users import locked_user, locked_users

EDITABLE = ("name", "description")


@unit_of_work
def create_role(
    *, tenant_id: str, name: str, description: str = "", type: str = Role.Type.TENANT, organization_id: str | None = None
) -> Role:
    """Create a role of the tenant or of one organization. Raises `Invalid`, `NotFound`, or `AlreadyExists` for a taken name.

    Names are unique within one owner.
    """
    if (organization_id is not None) != (type == Role.Type.ORGANIZATION):
        raise Invalid({"owner_id": ["A role of an organization needs organization_id, and a role of the tenant must not have it."]})
    if organization_id is not None:
        organization = Organization.objects.of(tenant_id).filter(pk=organization_id).first()
        if organization is None:
            raise NotFound("No organization found by that id or name.")
        refuse_if_being_deleted(organization)
    refuse_in_closing_tenant(tenant_id)
    role = Role(tenant_id=tenant_id, name=name, description=description, type=type, organization_id=organization_id)
    validated_save(role)
    return role


@unit_of_work
def update_role(*, tenant_id: str, role_id: str, changes: dict[str, Any]) -> Role:
    """Replace the name, the description, or both. Raises `NotFound`, `Invalid` or `AlreadyExists`."""
    role = locked_role(tenant_id=tenant_id, role_id=role_id)
    unknown = {name: ["Unknown field."] for name in changes if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
    for name, value in changes.items():
        setattr(role, name, value)
    if changes:
        validated_save(role, fields=list(changes))
    return role


def _empty(role: Role, limit: int) -> int:
    """Delete assignments of the role: to groups, then to groups and members in organizations, then to users.

    Deletions of assignments to users record no event.
    """
    deleted = delete_relations(tenant_id=role.tenant_id, role=role, limit=limit)
    if deleted:
        return deleted
    keys = list(UserRole.objects.of(role.tenant_id).filter(role=role).order_by("pk").values_list("pk", flat=True)[:limit])
    return UserRole.objects.of(role.tenant_id).filter(pk__in=keys).delete()[0]


def _count(role: Role) -> dict[str, int]:
    return {
        "groups with the role": GroupRole.objects.of(role.tenant_id).filter(role=role).count(),
        "groups with the role in organizations": OrganizationGroupRole.objects.of(role.tenant_id).filter(role=role).count(),
        "members with the role in organizations": OrganizationMemberRole.objects.of(role.tenant_id).filter(role=role).count(),
        "users with the role": UserRole.objects.of(role.tenant_id).filter(role=role).count(),
    }


def empty_roles(roles: models.QuerySet[Role], limit: int) -> int:
    """Delete up to `limit` rows of these roles and their assignments, role by role. Returns the number of deleted rows."""
    return ROLE_DELETION.next_of(roles, limit)


ROLE_DELETION = deletion_of(Role, Job.Type.ROLE_DELETION, missing="The role does not exist.", empty=_empty, count=_count)


def delete_role(*, tenant_id: str, role_id: str) -> Job | None:
    """Delete a role after all its assignments to members, groups and users. Raises `NotFound`.

    For a role with many assignments, returns the job that continues.
    """
    return ROLE_DELETION.start(tenant_id=tenant_id, key=role_id)


@unit_of_work
def assign_user_roles(*, tenant_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Assign roles to a user, for the whole tenant instead of one organization. Assigns all or none. Raises `NotFound`.

    Skips roles that the user already has.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    for role in roles_named(tenant_id=tenant_id, role_ids=role_ids):
        UserRole.objects.of(tenant_id).get_or_create(user=user, role=role, defaults={"tenant_id": tenant_id})


@unit_of_work
def assign_role_to_users(*, tenant_id: str, role_id: str, user_ids: Sequence[str]) -> None:
    """Assign one role to the given users, for the whole tenant instead of one organization. Assigns to all or none. Raises `NotFound`.

    Skips users that already have the role.
    """
    (role,) = roles_named(tenant_id=tenant_id, role_ids=[role_id])
    for user in locked_users(tenant_id=tenant_id, user_ids=user_ids):
        UserRole.objects.of(tenant_id).get_or_create(user=user, role=role, defaults={"tenant_id": tenant_id})


@unit_of_work
def remove_user_roles(*, tenant_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Remove roles from a user. Skips roles that the user does not have."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    UserRole.objects.of(tenant_id).filter(user=user, role_id__in=role_ids).delete()


def locked_role(*, tenant_id: str, role_id: str) -> Role:
    """Return the role with its row locked until the transaction ends. Raises `NotFound` or `BeingDeleted`."""
    role = Role.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=role_id).first()
    if role is None:
        raise NotFound("The role does not exist.")
    refuse_if_being_deleted(role)
    return role


def roles_named(*, tenant_id: str, role_ids: Sequence[str], organization_id: str | None = None) -> list[Role]:
    """Return the roles in the order of their ids, to be assigned in the tenant or in the organization.

    Raises `NotFound` if a role does not exist, and `NotSupported` for a role of another organization, because such a role applies only in
    its organization.
    """
    wanted = sorted(set(role_ids))
    roles = list(Role.objects.of(tenant_id).filter(pk__in=wanted).order_by("pk"))
    if len(roles) != len(wanted):
        raise NotFound("The role does not exist.")
    for role in roles:
        refuse_if_being_deleted(role)
    if any(role.organization_id not in (None, organization_id) for role in roles):
        raise NotSupported("A role of an organization can be assigned inside that organization only.")
    return roles
