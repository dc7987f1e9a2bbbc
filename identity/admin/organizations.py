"""Admin pages of organizations, their connections, members and roles."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from foundation.admin.json_fields import ShapedJSONField
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.relations import RelationAdmin
from identity.admin.service_form import ServiceForm
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
from identity.services import memberships, organizations


class OrganizationForm(ServiceForm):
    branding = ShapedJSONField(label="Branding", help_text='A JSON object with "logo_url" and "colors".')
    metadata = ShapedJSONField(label="Metadata", help_text="A JSON object with at most 25 texts.")

    class Meta:
        model = Organization
        fields = ()  # The fieldsets of the admin class list them.


class OrganizationAdmin(DeletedInPartsAdmin[Organization]):
    form = OrganizationForm
    list_display = ("name", "display_name", "id", "created_at", "tenant")
    list_select_related = ("tenant",)
    search_fields = ("name", "display_name", "=id")
    empty_text = "No organizations yet. Add one for each customer company."
    deletion_effect = "Its members, roles, connections and groups are deleted first, with one event each. This can take a while."

    def get_fieldsets(self, request: HttpRequest, obj: Organization | None = None) -> Any:
        own = ["name", "display_name", "branding", "metadata"]
        if obj is None:
            return [(None, {"fields": own})]
        return [(None, {"fields": ["id", *own, *([] if self.is_bound(request) else ["tenant"])]}),
                ("Kept by the service", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]})]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> Any:
        return () if obj is None else ("id", "tenant", "created_at", "updated_at")

    def create(self, request: HttpRequest, form: Any) -> Organization:
        values = {name: value for name, value in form.cleaned_data.items() if value}
        return organizations.create_organization(tenant_id=self.tenant_for_new(request), **values)

    def change(self, request: HttpRequest, row: Organization, form: Any) -> None:
        if form.changes():
            organizations.update_organization(tenant_id=row.tenant_id, organization_id=row.pk, changes=form.changes())


class OrganizationConnectionAdmin(RelationAdmin[OrganizationConnection]):
    """The only relation that has settings, which can be changed."""

    joined = ("organization", "connection")
    list_filter = ("organization", "connection")
    list_select_related = ("organization", "connection", "tenant")
    search_fields = ("=organization__id", "=connection__id")
    search_help_text = "Id of an organization or of a connection."
    empty_text = "No connections of organizations yet. Add one so that members can log in to the organization."
    deletion_effect = "Users can no longer log in to the organization with it. Subscribers receive organization.connection.removed."

    def get_fieldsets(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> Any:
        return [(None, {"fields": self.joined}), ("Settings", {"fields": memberships.CONNECTION_FLAGS})]

    def get_readonly_fields(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> Any:
        return () if obj is None else self.joined

    def has_change_permission(self, request: HttpRequest, obj: OrganizationConnection | None = None) -> bool:
        # This relation has settings. Other relations can only be added and deleted.
        return super(RelationAdmin, self).has_change_permission(request, obj)

    def create(self, request: HttpRequest, form: Any) -> OrganizationConnection:
        organization: Organization = form.cleaned_data["organization"]
        connection: Connection = form.cleaned_data["connection"]
        flags = {name: form.cleaned_data[name] for name in memberships.CONNECTION_FLAGS}
        return memberships.add_connection(
            tenant_id=self.tenant_for_new(request), organization_id=organization.pk, connection_id=connection.pk, **flags
        )

    def change(self, request: HttpRequest, row: OrganizationConnection, form: Any) -> None:
        if form.changes():
            memberships.update_organization_connection(
                tenant_id=row.tenant_id, organization_id=row.organization_id, connection_id=row.connection_id, changes=form.changes()
            )


class OrganizationMemberAdmin(RelationAdmin[OrganizationMember]):
    joined = ("organization", "user")
    list_filter = ("organization",)
    list_select_related = ("organization", "user", "tenant")
    search_fields = ("=user__user_id", "=organization__id")
    search_help_text = "Id of a user or of an organization."
    empty_text = "No members yet. Add a user to an organization here."
    deletion_effect = "The roles in the organization are removed first. Subscribers receive organization.member.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        user: User = chosen["user"]
        memberships.add_members(tenant_id=tenant_id, organization_id=organization.pk, user_ids=[user.user_id])


class OrganizationMemberRoleAdmin(RelationAdmin[OrganizationMemberRole]):
    joined = ("organization", "user", "role")
    list_filter = ("organization", "role")
    list_select_related = ("organization", "user", "role", "tenant")
    search_fields = ("=user__user_id", "=organization__id", "=role__id")
    search_help_text = "Id of a user, an organization or a role."
    empty_text = "No roles of members yet. Assign a role to a member here."
    deletion_effect = "Subscribers receive organization.member.role.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        user: User = chosen["user"]
        role: Role = chosen["role"]
        memberships.assign_member_roles(tenant_id=tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=[role.pk])


class OrganizationGroupRoleAdmin(RelationAdmin[OrganizationGroupRole]):
    joined = ("organization", "group", "role")
    list_filter = ("organization", "role")
    list_select_related = ("organization", "group", "role", "tenant")
    search_fields = ("=group__id", "=organization__id", "=role__id")
    search_help_text = "Id of a group, an organization or a role."
    empty_text = "No roles of groups yet. Assign a role to a group in an organization here."
    deletion_effect = "Subscribers receive organization.group.role.deleted."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        organization: Organization = chosen["organization"]
        group: Group = chosen["group"]
        role: Role = chosen["role"]
        memberships.assign_organization_group_roles(
            tenant_id=tenant_id, organization_id=organization.pk, group_id=group.pk, role_ids=[role.pk]
        )
