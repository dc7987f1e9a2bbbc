"""Tables on the page of an organization, and the forms that add rows to them: members, connections, roles and groups."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from foundation.admin.panels import Cell, Panel
from foundation.admin.returning import returning
from identity.admin.connection_options import strategy_in_words
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.admin.people.tables import SHOWN, Tables, cut, moment
from identity.admin.row_forms import RowField, RowForm, UserField
from identity.models import (
    Connection,
    Group,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    User,
)
from identity.services import memberships

MEMBERS = "Members"
CONNECTIONS = "Connections"
ROLES = "Roles and groups"


def roles_for(row: Organization) -> Any:
    """Return the roles that can be assigned in the organization: the roles of the organization, and the roles of the whole tenant."""
    known = Role.objects.of(row.tenant_id).filter(deletion_started_at=None)
    return known.filter(organization=None) | known.filter(organization=row)


class MemberForm(RowForm):
    user = UserField(label="New member")


class MemberRoleForm(RowForm):
    user = UserField(label="Member")
    role = RowField()

    def fit(self, request: HttpRequest, row: Organization) -> None:
        super().fit(request, row)
        self.fields["role"].offer(roles_for(row))  # type: ignore[attr-defined]


class ConnectionForm(RowForm):
    connection = RowField()
    assign_membership_on_login = forms.BooleanField(
        required=False,
        label="Make users members at login",
        help_text="Each user who logs in to the organization becomes a member. If off, only members can log in to it.",
    )

    def fit(self, request: HttpRequest, row: Organization) -> None:
        super().fit(request, row)
        others = Connection.objects.of(row.tenant_id).filter(deletion_started_at=None).exclude(organization_connections__organization=row)
        self.fields["connection"].offer(others)  # type: ignore[attr-defined]


class GroupRoleForm(RowForm):
    group = RowField()
    role = RowField()

    def fit(self, request: HttpRequest, row: Organization) -> None:
        super().fit(request, row)
        self.fields["group"].offer(Group.objects.of(row.tenant_id).filter(deletion_started_at=None))  # type: ignore[attr-defined]
        self.fields["role"].offer(roles_for(row))  # type: ignore[attr-defined]


def _named(row: Organization) -> dict[str, str]:
    return {"tenant_id": row.tenant_id, "organization_id": row.pk}


def _add_member(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    user: User = values["user"]
    memberships.add_members(**_named(row), user_ids=[user.user_id])
    return f"{label_of(user)} is now a member."


def _assign_role(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    user: User = values["user"]
    role: Role = values["role"]
    memberships.assign_member_roles(**_named(row), user_id=user.user_id, role_ids=[role.pk])
    return f"{label_of(user)} now has the role {role}."


def _add_connection(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    connection: Connection = values["connection"]
    is_assigned = values["assign_membership_on_login"]
    memberships.add_connection(**_named(row), connection_id=connection.pk, assign_membership_on_login=is_assigned)
    return f"Users can now log in to {row} with {connection}."


def _assign_group_role(_request: HttpRequest, row: Organization, values: dict[str, Any]) -> str:
    group: Group = values["group"]
    role: Role = values["role"]
    memberships.assign_organization_group_roles(**_named(row), group_id=group.pk, role_ids=[role.pk])
    return f"The members of {group} now have the role {role} in {row}."


ADDITIONS = (
    ObjectAction(
        "add-member",
        "Add member",
        lambda _request, row: f"The user becomes a member of {row}. Subscribers receive organization.member.added.",
        _add_member,
        form_class=MemberForm,
        permission="identity.add_organizationmember",
        tab=MEMBERS,
        table_permission="identity.view_organizationmember",
    ),
    ObjectAction(
        "assign-member-role",
        "Assign role",
        lambda _request, row: f"The member has the role in {row}. Subscribers receive organization.member.role.assigned.",
        _assign_role,
        form_class=MemberRoleForm,
        permission="identity.add_organizationmemberrole",
        tab=MEMBERS,
    ),
    ObjectAction(
        "add-connection",
        "Add connection",
        lambda _request, row: f"Users can log in to {row} with the connection. Subscribers receive organization.connection.added.",
        _add_connection,
        form_class=ConnectionForm,
        permission="identity.add_organizationconnection",
        tab=CONNECTIONS,
        table_permission="identity.view_organizationconnection",
    ),
    ObjectAction(
        "assign-group-role",
        "Assign role to group",
        lambda _request, row: f"The members of the group have the role in {row}. Subscribers receive organization.group.role.assigned.",
        _assign_group_role,
        form_class=GroupRoleForm,
        permission="identity.add_organizationgrouprole",
        tab=ROLES,
    ),
)


class OrganizationPanels(Tables):
    """The tables on the page of an organization, in one admin site."""

    def members(self, request: HttpRequest, row: Organization) -> Panel | None:
        if not self.may(request, "view", OrganizationMember):
            return None
        newest = OrganizationMember.objects.of(row.tenant_id).filter(organization=row).select_related("user").order_by("-pk")
        found = list(newest[: SHOWN + 1])
        given: dict[int, list[str]] = {}
        for role in OrganizationMemberRole.objects.of(row.tenant_id).filter(member__in=found).select_related("role"):
            given.setdefault(role.member_id, []).append(role.role.name)
        rows = [
            (
                self.person(request, member.user),
                Cell(", ".join(given.get(member.pk, ())) or "None"),
                Cell(moment(member.created_at)),
                self.removal(request, member),
            )
            for member in found
        ]
        return cut(
            "Members",
            ("User", "Roles", "Member since (UTC)", ""),
            rows,
            empty_text="No members.",
            more_url=self.list_of(OrganizationMember, organization__id__exact=row.pk),
            more_text="All members",
            adds="add-member",
        )

    def member_roles(self, request: HttpRequest, row: Organization) -> Panel | None:
        if not self.may(request, "view", OrganizationMemberRole):
            return None
        newest = OrganizationMemberRole.objects.of(row.tenant_id).filter(organization=row).select_related("user", "role").order_by("-pk")
        rows = [
            (
                self.person(request, given.user),
                self.linked(request, given.role),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Roles of members in this organization",
            ("User", "Role", "Assigned at (UTC)", ""),
            rows,
            empty_text="No roles of members.",
            more_url=self.list_of(OrganizationMemberRole, organization__id__exact=row.pk),
            more_text="All roles of members",
            adds="assign-member-role",
        )

    def connections(self, request: HttpRequest, row: Organization) -> Panel | None:
        if not self.may(request, "view", OrganizationConnection):
            return None
        may_change = self.may(request, "change", OrganizationConnection)
        found = OrganizationConnection.objects.of(row.tenant_id).filter(organization=row).select_related("connection").order_by("-pk")
        rows = [
            (
                self.linked(request, joined.connection, note=strategy_in_words(joined.connection.strategy)),
                Cell("Yes" if joined.is_enabled else "No"),
                Cell("Yes" if joined.assign_membership_on_login else "No"),
                Cell("Yes" if joined.show_as_button else "No"),
                Cell("Change settings", returning(request, self.page_of(joined))) if may_change else Cell(""),
                self.removal(request, joined),
            )
            for joined in found[: SHOWN + 1]
        ]
        return cut(
            "Connections",
            ("Connection", "Enabled", "Users become members at login", "Show as button", "", ""),
            rows,
            empty_text="No connections. Members cannot log in to the organization without a connection.",
            more_url=self.list_of(OrganizationConnection, organization__id__exact=row.pk),
            more_text="All connections",
            adds="add-connection",
        )

    def own_roles(self, request: HttpRequest, row: Organization) -> Panel | None:
        """Return the roles that exist only in this organization."""
        if not self.may(request, "view", Role):
            return None
        found = Role.objects.of(row.tenant_id).filter(organization=row).order_by("name", "pk")[: SHOWN + 1]
        rows = [(self.linked(request, role), Cell(role.description), self.removal(request, role, "Delete")) for role in found]
        may_add = self.may(request, "add", Role)
        return cut(
            "Roles of this organization",
            ("Role", "Description", ""),
            rows,
            empty_text="No roles of this organization. You can assign the roles of the tenant.",
            more_url=self.list_of(Role, organization__id__exact=row.pk),
            more_text="All roles of this organization",
            add_url=self.add_of(Role, type=Role.Type.ORGANIZATION, organization=row.pk) if may_add else "",
            add_text="Add role",
        )

    def own_groups(self, request: HttpRequest, row: Organization) -> Panel | None:
        """Return the groups that belong to this organization."""
        if not self.may(request, "view", Group):
            return None
        found = Group.objects.of(row.tenant_id).filter(organization=row).order_by("name", "pk")[: SHOWN + 1]
        rows = [(self.linked(request, group), Cell(group.description), self.removal(request, group, "Delete")) for group in found]
        may_add = self.may(request, "add", Group)
        return cut(
            "Groups of this organization",
            ("Group", "Description", ""),
            rows,
            empty_text="No groups of this organization.",
            more_url=self.list_of(Group, organization__id__exact=row.pk),
            more_text="All groups of this organization",
            add_url=self.add_of(Group, type=Group.Type.ORGANIZATION, organization=row.pk) if may_add else "",
            add_text="Add group",
        )

    def group_roles(self, request: HttpRequest, row: Organization) -> Panel | None:
        if not self.may(request, "view", OrganizationGroupRole):
            return None
        newest = OrganizationGroupRole.objects.of(row.tenant_id).filter(organization=row).select_related("group", "role").order_by("-pk")
        rows = [
            (
                self.linked(request, given.group),
                self.linked(request, given.role),
                Cell(moment(given.created_at)),
                self.removal(request, given),
            )
            for given in newest[: SHOWN + 1]
        ]
        return cut(
            "Roles of groups in this organization",
            ("Group", "Role", "Assigned at (UTC)", ""),
            rows,
            empty_text="No roles of groups.",
            more_url=self.list_of(OrganizationGroupRole, organization__id__exact=row.pk),
            more_text="All roles of groups",
            adds="assign-group-role",
        )
