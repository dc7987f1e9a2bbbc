"""Admin pages of roles and of the users who have them in the whole tenant."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from foundation.admin.badges import badge
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.people.role_panels import ADDITIONS, GROUPS, USERS, RolePanels
from identity.admin.relations import RelationAdmin
from identity.models import Role, User, UserRole
from identity.services import roles

# The tab for permissions. Another app adds the tables of permissions to this tab.
PERMISSIONS = "Permissions"


class RoleAdmin(DeletedInPartsAdmin[Role]):
    list_display = ("name", "type", "organization", "id", "created_at", "tenant")
    list_filter = ("type", "organization")
    list_select_related = ("organization", "tenant")
    search_fields = ("name", "=id")
    autocomplete_fields = ("organization",)
    empty_text = "No roles yet. Add one, then assign it to users, groups or members of an organization."
    deletion_effect = (
        "The role is removed from all users, groups and members of organizations first. Each removal from a group or a member is an event."
    )

    id_field = "id"
    object_actions = ADDITIONS

    def __init__(self, model: type[Role], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        shown = RolePanels(admin_site)
        self.tabs = {PERMISSIONS: [], USERS: [shown.users, shown.members], GROUPS: [shown.groups, shown.organization_groups]}

    def get_fieldsets(self, request: HttpRequest, obj: Role | None = None) -> Any:
        own = ["name", "description", "type", "organization"]
        if obj is None:
            hint = (
                "A role of the type Organization can be assigned only in the chosen organization. For the type Tenant, leave the "
                "organization empty."
            )
            return [(None, {"fields": own, "description": hint})]
        return [(None, {"fields": own}),
                ("Set by the service", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]})]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Role | None = None) -> Any:
        return () if obj is None else ("type", "organization", "created_at", "updated_at")

    def primary_of(self, row: Role) -> str:
        return "assign-to-user" if row.organization_id is None else "assign-to-member"

    def badge_of(self, row: Role) -> str:
        """Return a badge with the state of the role, such as its deletion. A role without a state gets a badge with its owner."""
        return super().badge_of(row) or badge("Of the tenant" if row.organization_id is None else "Of an organization")

    def create(self, request: HttpRequest, form: Any) -> Role:
        values = dict(form.cleaned_data)
        organization = values.pop("organization")
        return roles.create_role(
            tenant_id=self.tenant_for_new(request), organization_id=organization.pk if organization else None, **values
        )

    def change(self, request: HttpRequest, row: Role, form: Any) -> None:
        if form.changes():
            roles.update_role(tenant_id=row.tenant_id, role_id=row.pk, changes=form.changes())


class UserRoleAdmin(RelationAdmin[UserRole]):
    joined = ("user", "role")
    described = "role {role} of {user}"
    list_filter = ("role",)
    list_select_related = ("user", "role", "tenant")
    search_fields = ("=user__user_id", "=role__id")
    search_help_text = "Id of a user or of a role."
    empty_text = "No roles of users yet. Add one to give a user a role."
    hint = "The user gets the role in the whole tenant."
    deletion_effect = "The user loses the role. No event is sent."

    def join(self, tenant_id: str, **chosen: Any) -> None:
        user: User = chosen["user"]
        role: Role = chosen["role"]
        roles.assign_user_roles(tenant_id=tenant_id, user_id=user.user_id, role_ids=[role.pk])
