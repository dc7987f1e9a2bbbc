"""Admin pages of groups, their members and their roles."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from foundation.admin.badges import badge
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.people.group_panels import ADDITIONS, MEMBERS, ROLES, GroupPanels
from identity.admin.relations import RelationAdmin
from identity.admin.service_form import ServiceForm
from identity.models import Group, GroupMember, GroupRole, Role, User
from identity.services import groups
from identity.services.failures import Invalid

_OWNERS = {
    Group.Type.TENANT: "Of the tenant",
    Group.Type.ORGANIZATION: "Of an organization",
    Group.Type.CONNECTION: "Of a directory",
}


class GroupForm(ServiceForm):
    class Meta:
        model = Group
        fields = ()  # The admin class lists the fields, in `fieldsets`.
        help_texts = {"external_id": "Id of the group in another system, such as a directory."}


class GroupAdmin(DeletedInPartsAdmin[Group]):
    form = GroupForm
    list_display = ("name", "type", "connection", "organization", "id", "created_at", "tenant")
    list_filter = ("type", "connection", "organization")
    list_select_related = ("connection", "organization", "tenant")
    search_fields = ("name", "=id", "=external_id")
    autocomplete_fields = ("connection", "organization")
    empty_text = "No groups yet. Add one for the whole tenant, for an organization, or for the directory of a connection."
    deletion_effect = "The memberships and the role assignments of the group are deleted first, with one event each. Users and roles stay."

    id_field = "id"
    object_actions = ADDITIONS
    primary_action = "add-member"

    def __init__(self, model: type[Group], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        shown = GroupPanels(admin_site)
        self.tabs = {MEMBERS: [shown.members, shown.nested], ROLES: [shown.roles, shown.organization_roles]}

    def get_fieldsets(self, request: HttpRequest, obj: Group | None = None) -> Any:
        own = ["name", "type", "connection", "organization", "description", "external_id"]
        if obj is None:
            hint = (
                "The type says where the group belongs: to the whole tenant, to an organization, or to the directory of a connection. "
                "Choose the organization or the connection; for the type Tenant, leave both empty."
            )
            return [(None, {"fields": own, "description": hint})]
        return [(None, {"fields": own}),
                ("Set by the service", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]})]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return () if obj is None else ("type", "connection", "organization", "created_at", "updated_at")

    def badge_of(self, row: Group) -> str:
        """Return the state if there is one, otherwise the owner of the group."""
        return super().badge_of(row) or badge(_OWNERS[Group.Type(row.type)])

    def create(self, request: HttpRequest, form: Any) -> Group:
        values = dict(form.cleaned_data)
        connection, organization = values.pop("connection"), values.pop("organization")
        return groups.create_group(
            tenant_id=self.tenant_for_new(request),
            connection_id=connection.pk if connection else None,
            organization_id=organization.pk if organization else None,
            **{name: value for name, value in values.items() if value},
        )

    def change(self, request: HttpRequest, row: Group, form: Any) -> None:
        if form.changes():
            groups.update_group(tenant_id=row.tenant_id, group_id=row.pk, changes=form.changes())


class GroupMemberAdmin(RelationAdmin[GroupMember]):
    joined = ("group", "user", "nested_group")
    described = "membership of {user} in {group}"
    list_filter = ("group",)
    list_select_related = ("group", "user", "nested_group", "tenant")
    search_fields = ("=user__user_id", "=group__id")
    search_help_text = "Id of a user or of a group."
    empty_text = "No members yet. Add one to put a user into a group."
    hint = "Choose a user or a nested group. The members of a nested group count as members. Only a group of a connection can be nested."
    deletion_effect = "The member loses the roles of the group. Subscribers receive group.member.deleted."

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        return ["group"]

    def heading_of(self, row: GroupMember) -> str:
        return super().heading_of(row) if row.user is not None else f"Membership of {row.nested_group} in {row.group}"

    def join(self, tenant_id: str, **chosen: Any) -> None:
        group: Group = chosen["group"]
        user: User | None = chosen["user"]
        nested: Group | None = chosen["nested_group"]
        if (user is None) == (nested is None):
            raise Invalid({"user": ["Choose either a user or a nested group."]})
        groups.add_group_members(
            tenant_id=tenant_id,
            group_id=group.pk,
            user_ids=[user.user_id] if user else [],
            nested_ids=[nested.pk] if nested else [],
        )


class GroupRoleAdmin(RelationAdmin[GroupRole]):
    joined = ("group", "role")
    described = "role {role} of {group}"
    list_filter = ("group", "role")
    list_select_related = ("group", "role", "tenant")
    search_fields = ("=group__id", "=role__id")
    search_help_text = "Id of a group or of a role."
    empty_text = "No roles of groups yet. Add one to give all members of a group a role."
    hint = "All members of the group get the role in the whole tenant."
    deletion_effect = "All members of the group lose the role. Subscribers receive group.role.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        group: Group = chosen["group"]
        role: Role = chosen["role"]
        groups.assign_group_roles(tenant_id=tenant_id, group_id=group.pk, role_ids=[role.pk])
