"""Tables on the page of a role: the users and groups that have the role, with forms that assign it to others."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.admin.people.tables import SHOWN, Tables, cut, moment
from identity.admin.row_forms import RowField, RowForm, UserField
from identity.models import Group, GroupRole, Organization, OrganizationGroupRole, OrganizationMemberRole, Role, User, UserRole
from identity.services import groups, memberships, roles

USERS = "Users"
GROUPS = "Groups"


class UserForm(RowForm):
    user = UserField()


class MemberForm(RowForm):
    organization = RowField()
    user = UserField(label="Member")

    def fit(self, request: HttpRequest, row: Role) -> None:
        super().fit(request, row)
        self.fields["organization"].offer(_organizations_of(row))  # type: ignore[attr-defined]


class GroupForm(RowForm):
    group = RowField()

    def fit(self, request: HttpRequest, row: Role) -> None:
        super().fit(request, row)
        self.fields["group"].offer(Group.objects.of(row.tenant_id).filter(deletion_started_at=None))  # type: ignore[attr-defined]


def _organizations_of(row: Role) -> Any:
    """Return the organizations in which the role can be assigned."""
    known = Organization.objects.of(row.tenant_id).filter(deletion_started_at=None)
    return known.filter(pk=row.organization_id) if row.organization_id else known


def _assign_to_user(_request: HttpRequest, row: Role, values: dict[str, Any]) -> str:
    user: User = values["user"]
    roles.assign_user_roles(tenant_id=row.tenant_id, user_id=user.user_id, role_ids=[row.pk])
    return f"{label_of(user)} now has the role."


def _assign_to_member(_request: HttpRequest, row: Role, values: dict[str, Any]) -> str:
    user: User = values["user"]
    organization: Organization = values["organization"]
    memberships.assign_member_roles(tenant_id=row.tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=[row.pk])
    return f"{label_of(user)} now has the role in {organization}."


def _assign_to_group(_request: HttpRequest, row: Role, values: dict[str, Any]) -> str:
    group: Group = values["group"]
    groups.assign_group_roles(tenant_id=row.tenant_id, group_id=group.pk, role_ids=[row.pk])
    return f"All members of {group} now have the role."


def _is_tenant_wide(row: Role) -> bool:
    return row.organization_id is None


ADDITIONS = (
    ObjectAction(
        "assign-to-user",
        "Assign to user",
        lambda _request, row: f"The user has the role {row} in the whole tenant.",
        _assign_to_user,
        is_offered=_is_tenant_wide,
        form_class=UserForm,
        permission="identity.add_userrole",
        tab=USERS,
        table_permission="identity.view_userrole",
    ),
    ObjectAction(
        "assign-to-member",
        "Assign to member",
        lambda _request, row: f"The member has the role {row} in the organization. Subscribers receive organization.member.role.assigned.",
        _assign_to_member,
        form_class=MemberForm,
        permission="identity.add_organizationmemberrole",
        tab=USERS,
        table_permission="identity.view_organizationmemberrole",
    ),
    ObjectAction(
        "assign-to-group",
        "Assign to group",
        lambda _request, row: f"All members of the group have the role {row}. Subscribers receive group.role.assigned.",
        _assign_to_group,
        is_offered=_is_tenant_wide,
        form_class=GroupForm,
        permission="identity.add_grouprole",
        tab=GROUPS,
        table_permission="identity.view_grouprole",
    ),
)


class RolePanels(Tables):
    """The tables on the page of a role, in one admin site."""

    def users(self, request: HttpRequest, row: Role) -> Panel | None:
        """Return the users who have the role in the whole tenant; None for the role of an organization."""
        if not _is_tenant_wide(row) or not self.may(request, "view", UserRole):
            return None
        newest = UserRole.objects.of(row.tenant_id).filter(role=row).select_related("user").order_by("-pk")
        rows = [
            (self.person(request, given.user), Cell(moment(given.created_at)), self.removal(request, given))
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Users with this role in the whole tenant",
            ("User", "Assigned at (UTC)", ""),
            rows,
            empty_text="No users have this role in the whole tenant.",
            more_url=self.list_of(UserRole, role__id__exact=row.pk),
            more_text="All users with this role",
            adds="assign-to-user",
        )

    def members(self, request: HttpRequest, row: Role) -> Panel | None:
        if not self.may(request, "view", OrganizationMemberRole):
            return None
        newest = OrganizationMemberRole.objects.of(row.tenant_id).filter(role=row).select_related("user", "organization").order_by("-pk")
        rows = [
            (
                self.person(request, given.user),
                self.linked(request, given.organization, given.organization.display_name or given.organization.name),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Members with this role in an organization",
            ("User", "Organization", "Assigned at (UTC)", ""),
            rows,
            empty_text="No members of organizations have this role.",
            more_url=self.list_of(OrganizationMemberRole, role__id__exact=row.pk),
            more_text="All members with this role",
            adds="assign-to-member",
        )

    def groups(self, request: HttpRequest, row: Role) -> Panel | None:
        """Return the groups that have the role in the whole tenant; None for the role of an organization."""
        if not _is_tenant_wide(row) or not self.may(request, "view", GroupRole):
            return None
        newest = GroupRole.objects.of(row.tenant_id).filter(role=row).select_related("group").order_by("-pk")
        rows = [
            (self.linked(request, given.group), Cell(moment(given.created_at)), self.removal(request, given))
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Groups with this role in the whole tenant",
            ("Group", "Assigned at (UTC)", ""),
            rows,
            empty_text="No groups have this role in the whole tenant.",
            more_url=self.list_of(GroupRole, role__id__exact=row.pk),
            more_text="All groups with this role",
            adds="assign-to-group",
        )

    def organization_groups(self, request: HttpRequest, row: Role) -> Panel | None:
        if not self.may(request, "view", OrganizationGroupRole):
            return None
        newest = OrganizationGroupRole.objects.of(row.tenant_id).filter(role=row).select_related("group", "organization").order_by("-pk")
        rows = [
            (
                self.linked(request, given.group),
                self.linked(request, given.organization, given.organization.display_name or given.organization.name),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Groups with this role in an organization",
            ("Group", "Organization", "Assigned at (UTC)", ""),
            rows,
            empty_text="No groups. To assign the role to a group, open the page of the organization.",
            more_url=self.list_of(OrganizationGroupRole, role__id__exact=row.pk),
            more_text="All groups with this role in an organization",
        )
