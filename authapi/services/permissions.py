"""Adds and removes permissions of roles and users, and returns the permissions of a user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from authapi.models import ApiResource, Permission, RolePermission, UserPermission
from foundation.database.transactions import unit_of_work
from identity.models import Role, User
from identity.services.effective_roles import EffectiveRoles, effective_member_roles, effective_roles
from identity.services.failures import Invalid, NotFound
from identity.services.roles import locked_role
from identity.services.users import locked_user


@dataclass(frozen=True)
class Named:
    """The name of a permission: the identifier of its API and the value of the scope."""

    identifier: str
    value: str


@unit_of_work
def add_role_permissions(*, tenant_id: str, role_id: str, permissions: Sequence[Named]) -> None:
    """Add permissions to a role; existing permissions stay. Adds all or none. Raises `NotFound`, `Invalid`."""
    role = locked_role(tenant_id=tenant_id, role_id=role_id)
    for permission in _made(tenant_id, permissions):
        RolePermission.objects.of(tenant_id).get_or_create(role=role, permission=permission, defaults={"tenant_id": tenant_id})


@unit_of_work
def remove_role_permissions(*, tenant_id: str, role_id: str, permissions: Sequence[Named]) -> None:
    """Remove permissions from a role; permissions that the role does not have are skipped. Raises `NotFound`."""
    role = locked_role(tenant_id=tenant_id, role_id=role_id)
    RolePermission.objects.of(tenant_id).filter(role=role).filter(permission__in=_known(tenant_id, permissions)).delete()


@unit_of_work
def add_user_permissions(*, tenant_id: str, user_id: str, permissions: Sequence[Named]) -> None:
    """Add permissions to a user; existing permissions stay. Adds all or none. Raises `NotFound`, `Invalid`."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    for permission in _made(tenant_id, permissions):
        UserPermission.objects.of(tenant_id).get_or_create(user=user, permission=permission, defaults={"tenant_id": tenant_id})


@unit_of_work
def remove_user_permissions(*, tenant_id: str, user_id: str, permissions: Sequence[Named]) -> None:
    """Remove permissions from a user; permissions that the user does not have are skipped. Raises `NotFound`."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    UserPermission.objects.of(tenant_id).filter(user=user).filter(permission__in=_known(tenant_id, permissions)).delete()


def permissions_of_role(role: Role) -> QuerySet[Permission]:
    """Return a query for the permissions of a role with their APIs."""
    rows = Permission.objects.of(role.tenant_id).filter(role_permissions__role=role)
    return rows.select_related("api_resource")


@dataclass(frozen=True)
class UserPermissions:
    """The permissions of a user. Each permission is assigned directly or comes from a role."""

    user: User
    roles: EffectiveRoles

    def rows(self) -> QuerySet[Permission]:
        tenant_id = self.user.tenant_id
        direct = UserPermission.objects.of(tenant_id).filter(user=self.user).values("permission")
        through = RolePermission.objects.of(tenant_id).filter(role__in=self._role_ids).values("permission")
        rows = Permission.objects.of(tenant_id).filter(Q(pk__in=direct) | Q(pk__in=through))
        return rows.select_related("api_resource")

    def direct_keys(self) -> frozenset[int]:
        """Return the keys of the permissions that the user has directly."""
        rows = UserPermission.objects.of(self.user.tenant_id).filter(user=self.user)
        return frozenset(rows.values_list("permission_id", flat=True))

    def roles_by_permission(self) -> dict[int, list[Role]]:
        """Return the roles that grant each permission."""
        found: dict[int, list[Role]] = {}
        rows: QuerySet[Any] = RolePermission.objects.of(self.user.tenant_id).filter(role__in=self._role_ids)
        for row in rows.select_related("role").order_by("pk"):
            found.setdefault(row.permission_id, []).append(row.role)
        return found

    @property
    def _role_ids(self) -> frozenset[str]:
        return self.roles.direct | self.roles.through_groups


def permissions_of_user(user: User) -> UserPermissions:
    """Return the permissions of a user in the whole tenant: direct permissions, and permissions of the user's roles and groups."""
    return UserPermissions(user, effective_roles(user))


def permission_values(user: User, resource: ApiResource, *, organization_id: str | None = None) -> tuple[str, ...]:
    """Return the scopes that a user has at one API. `organization_id` adds the scopes of the user's roles in this organization."""
    roles = effective_roles(user)
    role_ids = roles.direct | roles.through_groups
    if organization_id is not None:
        here = effective_member_roles(user, organization_id)
        role_ids |= here.direct | here.through_groups
    direct = UserPermission.objects.of(user.tenant_id).filter(user=user).values("permission")
    through = RolePermission.objects.of(user.tenant_id).filter(role__in=role_ids).values("permission")
    rows = Permission.objects.of(user.tenant_id).filter(api_resource=resource).filter(Q(pk__in=direct) | Q(pk__in=through))
    return tuple(rows.order_by("value").values_list("value", flat=True))


def _made(tenant_id: str, named: Iterable[Named]) -> list[Permission]:
    """Return the rows of permissions in a fixed order. Creates missing rows."""
    resources = _resources(tenant_id, named, is_locked=True)
    found = []
    for one in sorted(set(named), key=lambda one: (one.identifier, one.value)):
        resource = resources.get(one.identifier)
        if resource is None:
            raise NotFound("The resource server does not exist.")
        if one.value not in resource.scope_values:
            raise Invalid({"permissions": [f"The API has no permission {one.value}."]})
        defaults = {"tenant_id": tenant_id}
        found.append(Permission.objects.of(tenant_id).get_or_create(api_resource=resource, value=one.value, defaults=defaults)[0])
    return found


def _known(tenant_id: str, named: Iterable[Named]) -> list[int]:
    keys: list[int] = []
    resources = _resources(tenant_id, named)
    for one in named:
        if one.identifier in resources:
            rows = Permission.objects.of(tenant_id).filter(api_resource=resources[one.identifier], value=one.value)
            keys.extend(rows.values_list("pk", flat=True))
    return keys


def _resources(tenant_id: str, named: Iterable[Named], *, is_locked: bool = False) -> dict[str, ApiResource]:
    """Return the APIs by identifier. With `is_locked`, their scopes cannot change until the transaction ends."""
    rows = ApiResource.objects.of(tenant_id).filter(identifier__in={one.identifier for one in named}).order_by("pk")
    return {resource.identifier: resource for resource in (rows.select_for_update(no_key=True) if is_locked else rows)}
