"""Create, change and delete roles, and give them to users in the whole tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from identity.models import Organization, Role, User, UserRole
from identity.services.failures import Invalid, NotFound, NotSupported
from identity.services.relations import delete_relations
from identity.services.saving import validated_save
from identity.services.users import locked_user, users_named
from identity.transactions import lock_rows, unit_of_work

EDITABLE = ("name", "description")


@unit_of_work
def create_role(
    *, tenant_id: str, name: str, description: str = "", type: str = Role.Type.TENANT, organization_id: str | None = None
) -> Role:
    """Create a role of the tenant or of one organization; raise `Invalid`, `NotFound`, or `AlreadyExists` for a taken name.

    Names are unique within one owner.
    """
    if (organization_id is not None) != (type == Role.Type.ORGANIZATION):
        raise Invalid({"owner_id": ["A role of an organization names it, one of the tenant names none."]})
    if organization_id is not None and not Organization.objects.of(tenant_id).filter(pk=organization_id).exists():
        raise NotFound("No organization found by that id or name.")
    role = Role(tenant_id=tenant_id, name=name, description=description, type=type, organization_id=organization_id)
    validated_save(role)
    return role


@unit_of_work
def update_role(*, tenant_id: str, role_id: str, changes: dict[str, Any]) -> Role:
    """Replace name or description; raise `NotFound`, `Invalid` or `AlreadyExists`."""
    role = locked_role(tenant_id=tenant_id, role_id=role_id)
    unknown = {name: ["Unknown field."] for name in changes if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
    for name, value in changes.items():
        setattr(role, name, value)
    if changes:
        validated_save(role, fields=list(changes))
    return role


@unit_of_work
def delete_role(*, tenant_id: str, role_id: str) -> None:
    """Take the role away from every member and group, then delete it; raise `NotFound`."""
    role = locked_role(tenant_id=tenant_id, role_id=role_id)
    delete_relations(tenant_id=tenant_id, role=role)
    role.delete()


@unit_of_work
def assign_user_roles(*, tenant_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Give a user roles in the whole tenant; those it has already stay. Raises `NotFound` and then gives none."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    for role in roles_named(tenant_id=tenant_id, role_ids=role_ids):
        UserRole.objects.of(tenant_id).get_or_create(user=user, role=role, defaults={"tenant_id": tenant_id})


@unit_of_work
def assign_role_to_users(*, tenant_id: str, role_id: str, user_ids: Sequence[str]) -> None:
    """Give one role to users in the whole tenant; those who have it keep it. Raises `NotFound` and then gives it to nobody."""
    (role,) = roles_named(tenant_id=tenant_id, role_ids=[role_id])
    users = users_named(tenant_id=tenant_id, user_ids=user_ids)
    lock_rows(User, [user.pk for user in users])
    for user in users:
        UserRole.objects.of(tenant_id).get_or_create(user=user, role=role, defaults={"tenant_id": tenant_id})


@unit_of_work
def remove_user_roles(*, tenant_id: str, user_id: str, role_ids: Sequence[str]) -> None:
    """Take roles away; those it does not have are skipped."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    UserRole.objects.of(tenant_id).filter(user=user, role_id__in=role_ids).delete()


def locked_role(*, tenant_id: str, role_id: str) -> Role:
    """Return the role with its row locked until the transaction ends; raise `NotFound`."""
    role = Role.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=role_id).first()
    if role is None:
        raise NotFound("The role does not exist.")
    return role


def roles_named(*, tenant_id: str, role_ids: Sequence[str], organization_id: str | None = None) -> list[Role]:
    """Return the roles in the order of their ids, to be given in the tenant or in the organization.

    Raises `NotFound` when one of them does not exist, `NotSupported` for a role of another organization: it counts inside its own alone.
    """
    wanted = sorted(set(role_ids))
    roles = list(Role.objects.of(tenant_id).filter(pk__in=wanted).order_by("pk"))
    if len(roles) != len(wanted):
        raise NotFound("The role does not exist.")
    if any(role.organization_id not in (None, organization_id) for role in roles):
        raise NotSupported("A role of an organization can be assigned inside that organization only.")
    return roles
