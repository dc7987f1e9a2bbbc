"""Tables on the page of a group: members and roles, with forms that add them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.admin.people.tables import SHOWN, Tables, cut, moment
from identity.admin.row_forms import RowField, RowForm, UserField
from identity.models import Group, GroupMember, GroupRole, OrganizationGroupRole, Role, User
from identity.services import groups

MEMBERS = "Members"
ROLES = "Roles"


class MemberForm(RowForm):
    user = UserField(label="New member")


class NestedForm(RowForm):
    nested_group = RowField(label="Group to add")

    def fit(self, request: HttpRequest, row: Group) -> None:
        super().fit(request, row)
        others = Group.objects.of(row.tenant_id).filter(deletion_started_at=None, connection=row.connection_id).exclude(pk=row.pk)
        self.fields["nested_group"].offer(others)  # type: ignore[attr-defined]


class RoleForm(RowForm):
    role = RowField()

    def fit(self, request: HttpRequest, row: Group) -> None:
        super().fit(request, row)
        tenant_wide = Role.objects.of(row.tenant_id).filter(deletion_started_at=None, organization=None)
        self.fields["role"].offer(tenant_wide)  # type: ignore[attr-defined]


def _add_user(_request: HttpRequest, row: Group, values: dict[str, Any]) -> str:
    user: User = values["user"]
    groups.add_group_members(tenant_id=row.tenant_id, group_id=row.pk, user_ids=[user.user_id])
    return f"{label_of(user)} is now a member."


def _add_nested(_request: HttpRequest, row: Group, values: dict[str, Any]) -> str:
    nested: Group = values["nested_group"]
    groups.add_group_members(tenant_id=row.tenant_id, group_id=row.pk, nested_ids=[nested.pk])
    return f"The members of {nested} are now members of {row}."


def _assign_role(_request: HttpRequest, row: Group, values: dict[str, Any]) -> str:
    role: Role = values["role"]
    groups.assign_group_roles(tenant_id=row.tenant_id, group_id=row.pk, role_ids=[role.pk])
    return f"All members of {row} now have the role {role}."


def _has_nested(row: Group) -> bool:
    return row.type == Group.Type.CONNECTION


ADDITIONS = (
    ObjectAction(
        "add-member",
        "Add member",
        lambda _request, row: f"The user becomes a member of {row} and has its roles. Subscribers receive group.member.added.",
        _add_user,
        form_class=MemberForm,
        permission="identity.add_groupmember",
        tab=MEMBERS,
        table_permission="identity.view_groupmember",
    ),
    ObjectAction(
        "add-group",
        "Add group",
        lambda _request, row: f"The members of the group become members of {row}. Subscribers receive group.member.added.",
        _add_nested,
        is_offered=_has_nested,
        form_class=NestedForm,
        permission="identity.add_groupmember",
        tab=MEMBERS,
        table_permission="identity.view_groupmember",
    ),
    ObjectAction(
        "assign-role",
        "Assign role",
        lambda _request, row: f"All members of {row} have the role in the whole tenant. Subscribers receive group.role.assigned.",
        _assign_role,
        form_class=RoleForm,
        permission="identity.add_grouprole",
        tab=ROLES,
        table_permission="identity.view_grouprole",
    ),
)


class GroupPanels(Tables):
    """The tables on the page of a group, in one admin site."""

    def members(self, request: HttpRequest, row: Group) -> Panel | None:
        if not self.may(request, "view", GroupMember):
            return None
        newest = GroupMember.objects.of(row.tenant_id).filter(group=row, user__isnull=False).select_related("user").order_by("-pk")
        rows = [
            (self.person(request, member.user), Cell(moment(member.created_at)), self.removal(request, member))
            for member in newest[: SHOWN + 1]
            if member.user is not None
        ]
        return cut(
            "Members",
            ("User", "Member since (UTC)", ""),
            rows,
            empty_text="No members.",
            more_url=self.list_of(GroupMember, group__id__exact=row.pk),
            more_text="All members",
            adds="add-member",
        )

    def nested(self, request: HttpRequest, row: Group) -> Panel | None:
        """Return the nested groups of a group of a directory. Return None for other groups, because they cannot contain groups."""
        if not _has_nested(row) or not self.may(request, "view", GroupMember):
            return None
        newest = GroupMember.objects.of(row.tenant_id).filter(group=row, user=None).select_related("nested_group").order_by("-pk")
        rows = [
            (self.linked(request, member.nested_group), Cell(moment(member.created_at)), self.removal(request, member))
            for member in newest[: SHOWN + 1]
            if member.nested_group is not None
        ]
        return cut(
            "Groups in this group",
            ("Group", "Member since (UTC)", ""),
            rows,
            empty_text="No nested groups.",
            more_url=self.list_of(GroupMember, group__id__exact=row.pk),
            more_text="All members",
            adds="add-group",
        )

    def roles(self, request: HttpRequest, row: Group) -> Panel | None:
        if not self.may(request, "view", GroupRole):
            return None
        newest = GroupRole.objects.of(row.tenant_id).filter(group=row).select_related("role").order_by("-pk")
        rows = [
            (
                self.linked(request, given.role),
                Cell(given.role.description),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Roles in the whole tenant",
            ("Role", "Description", "Assigned at (UTC)", ""),
            rows,
            empty_text="No roles.",
            more_url=self.list_of(GroupRole, group__id__exact=row.pk),
            more_text="All roles of this group",
            adds="assign-role",
        )

    def organization_roles(self, request: HttpRequest, row: Group) -> Panel | None:
        if not self.may(request, "view", OrganizationGroupRole):
            return None
        newest = OrganizationGroupRole.objects.of(row.tenant_id).filter(group=row).select_related("organization", "role").order_by("-pk")
        rows = [
            (
                self.linked(request, given.organization, given.organization.display_name or given.organization.name),
                self.linked(request, given.role),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Roles in organizations",
            ("Organization", "Role", "Assigned at (UTC)", ""),
            rows,
            empty_text="No roles in organizations. To assign one, open the page of the organization.",
            more_url=self.list_of(OrganizationGroupRole, q=row.pk),
            more_text="All roles in organizations",
        )
