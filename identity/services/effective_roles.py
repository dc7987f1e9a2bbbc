"""The effective roles of a user, assigned directly or through groups, including nested groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from identity.models import Group, GroupMember, GroupRole, OrganizationGroupRole, OrganizationMemberRole, Role, User, UserRole


@dataclass(frozen=True)
class EffectiveRoles:
    """The ids of roles by source: assigned to the user, or to a group of the user."""

    direct: frozenset[str]
    through_groups: frozenset[str]

    def rows(self, tenant_id: str) -> QuerySet[Role]:
        return Role.objects.of(tenant_id).filter(pk__in=self.direct | self.through_groups)

    def sources_of(self, role_id: str) -> list[str]:
        """Return `direct`, `groups` or both, as the sources of a role."""
        ways = {"direct": self.direct, "groups": self.through_groups}
        return [name for name, found in ways.items() if role_id in found]


def effective_roles(user: User) -> EffectiveRoles:
    """Return the roles of a user in the whole tenant."""
    direct = UserRole.objects.of(user.tenant_id).filter(user=user)
    through = GroupRole.objects.of(user.tenant_id).filter(group_id__in=groups_of(user))
    return _from(direct, through)


def effective_member_roles(user: User, organization_id: str) -> EffectiveRoles:
    """Return the roles of a user in one organization."""
    here = {"organization_id": organization_id}
    direct = OrganizationMemberRole.objects.of(user.tenant_id).filter(user=user, **here)
    through = OrganizationGroupRole.objects.of(user.tenant_id).filter(group_id__in=groups_of(user), **here)
    return _from(direct, through)


def groups_with_role(user: User, role_id: str) -> QuerySet[Group]:
    """Return the groups through which a user has a role in the whole tenant."""
    return Group.objects.of(user.tenant_id).filter(pk__in=groups_of(user), grouprole_rows__role_id=role_id)


def groups_with_member_role(user: User, organization_id: str, role_id: str) -> QuerySet[Group]:
    """Return the groups through which a user has a role in one organization."""
    given = {"organization_id": organization_id, "role_id": role_id}
    through = OrganizationGroupRole.objects.of(user.tenant_id).filter(group_id__in=groups_of(user), **given)
    return Group.objects.of(user.tenant_id).filter(pk__in=through.values("group_id"))


def groups_of(user: User) -> frozenset[str]:
    """Return the ids of the groups of a user, including all groups that contain one of them as a member."""
    members = GroupMember.objects.of(user.tenant_id)
    found: set[str] = set()
    new = set(members.filter(user=user).values_list("group_id", flat=True))
    # Groups may contain each other, so skip groups that were already visited.
    while new:
        found |= new
        new = set(members.filter(nested_group_id__in=new).values_list("group_id", flat=True)) - found
    return frozenset(found)


def _from(direct: QuerySet[Any], through: QuerySet[Any]) -> EffectiveRoles:
    return EffectiveRoles(*(frozenset(rows.values_list("role_id", flat=True)) for rows in (direct, through)))
