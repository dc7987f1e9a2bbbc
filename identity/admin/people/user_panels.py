"""Tables on the page of a user: identities, organizations, groups and roles, with forms that add the user to an organization or a group, or
give the user a role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest

from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction
from identity.admin.people.labels import label_of
from identity.admin.people.tables import SHOWN, Tables, cut, moment
from identity.admin.row_forms import RowField, RowForm
from identity.models import (
    Group,
    GroupMember,
    LinkedIdentity,
    Organization,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    User,
    UserRole,
)
from identity.services import groups, memberships, roles
from identity.services.effective_roles import effective_roles, groups_of

ACCESS = "Access"
_WAYS = {"direct": "the user", "groups": "a group of the user"}


class OrganizationForm(RowForm):
    organization = RowField()

    def fit(self, request: HttpRequest, row: User) -> None:
        super().fit(request, row)
        others = Organization.objects.of(row.tenant_id).filter(deletion_started_at=None).exclude(organizationmember_rows__user=row)
        self.fields["organization"].offer(others)  # type: ignore[attr-defined]


class GroupForm(RowForm):
    group = RowField()

    def fit(self, request: HttpRequest, row: User) -> None:
        super().fit(request, row)
        others = Group.objects.of(row.tenant_id).filter(deletion_started_at=None).exclude(groupmember_rows__user=row)
        self.fields["group"].offer(others)  # type: ignore[attr-defined]


class RoleForm(RowForm):
    role = RowField()

    def fit(self, request: HttpRequest, row: User) -> None:
        super().fit(request, row)
        tenant_wide = Role.objects.of(row.tenant_id).filter(deletion_started_at=None, organization=None)
        self.fields["role"].offer(tenant_wide.exclude(user_roles__user=row))  # type: ignore[attr-defined]


def _join_organization(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    organization: Organization = values["organization"]
    memberships.add_members(tenant_id=row.tenant_id, organization_id=organization.pk, user_ids=[row.user_id])
    return f"{label_of(row)} is now a member of {organization}."


def _join_group(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    group: Group = values["group"]
    groups.add_group_members(tenant_id=row.tenant_id, group_id=group.pk, user_ids=[row.user_id])
    return f"{label_of(row)} is now a member of {group}."


def _assign_role(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    role: Role = values["role"]
    roles.assign_user_roles(tenant_id=row.tenant_id, user_id=row.user_id, role_ids=[role.pk])
    return f"{label_of(row)} now has the role {role}."


ADDITIONS = (
    ObjectAction(
        "add-organization",
        "Add to organization",
        lambda _request, row: f"{label_of(row)} becomes a member of the organization. Subscribers receive organization.member.added.",
        _join_organization,
        form_class=OrganizationForm,
        permission="identity.add_organizationmember",
        tab=ACCESS,
    ),
    ObjectAction(
        "add-group",
        "Add to group",
        lambda _request, row: f"{label_of(row)} becomes a member of the group and has its roles. Subscribers receive group.member.added.",
        _join_group,
        form_class=GroupForm,
        permission="identity.add_groupmember",
        tab=ACCESS,
    ),
    ObjectAction(
        "add-role",
        "Assign role",
        lambda _request, row: f"{label_of(row)} gets the role in the whole tenant.",
        _assign_role,
        form_class=RoleForm,
        permission="identity.add_userrole",
        tab=ACCESS,
    ),
)


class UserPanels(Tables):
    """The tables on the page of a user, in one admin site."""

    def identities(self, request: HttpRequest, user: User) -> Panel:
        """Return the linked identities, each with a link to unlink it."""
        found = LinkedIdentity.objects.of(user.tenant_id).filter(user=user).select_related("connection")[:SHOWN]
        rows = [
            (
                self.linked(request, linked),
                Cell(linked.connection.name),
                Cell(moment(linked.created_at)),
                self.act(request, linked, "unlink", "Unlink"),
            )
            for linked in found
        ]
        act = self.act(request, user, "link", "Link another user")
        columns = ("Identity", "Connection", "Linked at (UTC)", "")
        return Panel(
            "Linked identities",
            columns,
            rows,
            "No linked identities: the user logs in with one account only.",
            add_url=act.url,
            add_text=act.text,
        )

    def organizations(self, request: HttpRequest, user: User) -> Panel | None:
        if not self.may(request, "view", OrganizationMember):
            return None
        found = list(OrganizationMember.objects.of(user.tenant_id).filter(user=user).select_related("organization")[: SHOWN + 1])
        given: dict[int, list[str]] = {}
        for row in OrganizationMemberRole.objects.of(user.tenant_id).filter(member__in=found).select_related("role"):
            given.setdefault(row.member_id, []).append(row.role.name)
        rows = [
            (
                self.linked(request, member.organization, member.organization.display_name or member.organization.name),
                Cell(", ".join(given.get(member.pk, ())) or "None"),
                Cell(moment(member.created_at)),
                self.removal(request, member),
            )
            for member in found
        ]
        return cut(
            "Organizations",
            ("Organization", "Roles in the organization", "Member since (UTC)", ""),
            rows,
            empty_text="No organizations.",
            more_url=self.list_of(OrganizationMember, q=user.user_id),
            more_text="All organizations of this user",
            adds="add-organization",
        )

    def groups(self, request: HttpRequest, user: User) -> Panel | None:
        if not self.may(request, "view", Group):
            return None
        found = list(Group.objects.of(user.tenant_id).filter(pk__in=groups_of(user)).order_by("name", "pk")[: SHOWN + 1])
        direct = {row.group_id: row for row in GroupMember.objects.of(user.tenant_id).filter(user=user, group__in=found)}
        rows = [
            (
                self.linked(request, group),
                Cell(group.get_type_display()),
                Cell("Direct" if group.pk in direct else "Through a nested group"),
                self.removal(request, direct[group.pk]) if group.pk in direct else Cell(""),
            )
            for group in found
        ]
        return cut(
            "Groups",
            ("Group", "Belongs to", "Membership", ""),
            rows,
            empty_text="No groups.",
            more_url=self.list_of(GroupMember, q=user.user_id),
            more_text="All groups of this user",
            adds="add-group",
        )

    def roles(self, request: HttpRequest, user: User) -> Panel | None:
        if not self.may(request, "view", Role):
            return None
        effective = effective_roles(user)
        found = list(effective.rows(user.tenant_id).order_by("name", "pk")[: SHOWN + 1])
        direct = {row.role_id: row for row in UserRole.objects.of(user.tenant_id).filter(user=user, role__in=found)}
        rows = [
            (
                self.linked(request, role),
                Cell(role.description),
                Cell(_ways(effective.sources_of(role.pk))),
                self.removal(request, direct[role.pk]) if role.pk in direct else Cell(""),
            )
            for role in found
        ]
        return cut(
            "Roles in the whole tenant",
            ("Role", "Description", "Assigned to", ""),
            rows,
            empty_text="The user has no roles in the whole tenant.",
            more_url=self.list_of(UserRole, q=user.user_id),
            more_text="All roles of this user",
            adds="add-role",
        )


def _ways(sources: Iterable[str]) -> str:
    return " and ".join(_WAYS[source] for source in sources).capitalize()
