"""Admin pages of permissions of roles and users, and their tables on the pages of a role and a user."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from authapi.models import ApiResource, OrganizationClientGrant, Permission, RolePermission, UserPermission
from authapi.services import permissions
from authapi.services.permissions import Named
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.people.tables import SHOWN, Tables, cut, moment
from identity.admin.people.user_panels import ACCESS
from identity.admin.roles import PERMISSIONS
from identity.admin.row_forms import RowForm
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.models import Role, User

# Maximum number of APIs whose scopes the form offers.
_MOST_APIS = 100


class PermissionForm(RowForm):
    permission = forms.ChoiceField(help_text="Each permission is a scope of an API.")

    def fit(self, request: HttpRequest, row: Any) -> None:
        super().fit(request, row)
        apis = ApiResource.objects.of(row.tenant_id).order_by("is_system", "name", "pk")[:_MOST_APIS]
        groups = [(api.name or api.identifier, [(f"{api.pk} {value}", value) for value in sorted(api.scope_values)]) for api in apis]
        self.fields["permission"].choices = [("", "Choose"), *((name, scopes) for name, scopes in groups if scopes)]  # type: ignore[attr-defined]


def _named(row: Any, chosen: str) -> Named:
    key, _, value = chosen.partition(" ")
    return Named(ApiResource.objects.of(row.tenant_id).get(pk=key).identifier, value)


def _add_to_role(_request: HttpRequest, row: Role, values: dict[str, Any]) -> str:
    named = _named(row, values["permission"])
    permissions.add_role_permissions(tenant_id=row.tenant_id, role_id=row.pk, permissions=[named])
    return f"{row} has the permission {named.value}."


def _add_to_user(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    named = _named(row, values["permission"])
    permissions.add_user_permissions(tenant_id=row.tenant_id, user_id=row.user_id, permissions=[named])
    return f"The user has the permission {named.value}."


def _remove_from_role(_request: HttpRequest, row: RolePermission, _values: dict[str, Any]) -> str:
    named = Named(row.permission.api_resource.identifier, row.permission.value)
    permissions.remove_role_permissions(tenant_id=row.tenant_id, role_id=row.role_id, permissions=[named])
    return f"{row.role} no longer has the permission {named.value}."


def _remove_from_user(_request: HttpRequest, row: UserPermission, _values: dict[str, Any]) -> str:
    named = Named(row.permission.api_resource.identifier, row.permission.value)
    permissions.remove_user_permissions(tenant_id=row.tenant_id, user_id=row.user.user_id, permissions=[named])
    return f"The user no longer has the permission {named.value} directly."


_ROLE_ADDITION = ObjectAction(
    "add-permission",
    "Add permission",
    lambda _request, row: f"Users with the role {row} get the permission. New tokens contain it; tokens that exist do not change.",
    _add_to_role,
    form_class=PermissionForm,
    permission="authapi.add_rolepermission",
    tab=PERMISSIONS,
    table_permission="authapi.view_rolepermission",
)
_USER_ADDITION = ObjectAction(
    "add-permission",
    "Add permission",
    lambda _request, row: f"{label_of(row)} gets the permission without a role. New tokens contain it; tokens that exist do not change.",
    _add_to_user,
    form_class=PermissionForm,
    permission="authapi.add_userpermission",
    tab=ACCESS,
)


class PermissionPanels(Tables):
    """The tables of permissions on the pages of one admin site."""

    def add_to(self, roles: ObjectActionsAdmin[Role], users: ObjectActionsAdmin[User]) -> None:
        """Add the tables and their forms to the pages of roles and users."""
        roles.tabs[PERMISSIONS].append(self.of_role)
        roles.object_actions = (*roles.object_actions, _ROLE_ADDITION)
        users.tabs[ACCESS].append(self.of_user)
        users.object_actions = (*users.object_actions, _USER_ADDITION)

    def of_role(self, request: HttpRequest, role: Role) -> Panel | None:
        if not self.may(request, "view", RolePermission):
            return None
        found = RolePermission.objects.of(role.tenant_id).filter(role=role)
        more = self.list_of(RolePermission, q=role.pk)
        return self._table(request, found, "Permissions", "No permissions. This role gives access to nothing yet.", more)

    def of_user(self, request: HttpRequest, user: User) -> Panel | None:
        if not self.may(request, "view", UserPermission):
            return None
        found = UserPermission.objects.of(user.tenant_id).filter(user=user)
        more = self.list_of(UserPermission, q=user.user_id)
        return self._table(
            request,
            found,
            "Permissions without a role",
            "No permissions without a role. This table does not list the permissions of the user's roles.",
            more,
        )

    def _table(self, request: HttpRequest, found: Any, title: str, empty: str, more: str) -> Panel:
        rows = [
            (
                Cell(given.permission.value),
                self.linked(request, given.permission.api_resource, note=given.permission.api_resource.identifier),
                Cell(moment(given.created_at)),
                self.act(request, given, "remove", "Remove"),
            )
            for given in found.select_related("permission__api_resource").order_by("-pk")[: SHOWN + 1]
        ]
        columns = ("Permission", "API", "Added (UTC)", "")
        return cut(title, columns, rows, empty_text=empty, more_url=more, more_text="All permissions", adds="add-permission")


class PermissionAdmin(ReadOnlyAdmin[Permission]):
    grows = False
    list_display = ("value", "api_resource", "created_at", "tenant")
    list_filter = ("api_resource",)
    list_select_related = ("api_resource", "tenant")
    search_fields = ("=value",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "api_resource", "value", "created_at")
    empty_text = "No permissions yet. Add scopes to an API, then give them to a role or a user."


class RolePermissionAdmin(ReadOnlyAdmin[RolePermission], ObjectActionsAdmin[RolePermission]):
    list_display = ("role", "permission", "created_at", "tenant")
    list_select_related = ("role", "permission", "tenant")
    search_fields = ("=role__id", "=permission__value")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "role", "permission", "created_at")
    empty_text = "No permissions of roles. To add permissions, open the page of a role."
    object_actions = (
        ObjectAction(
            "remove",
            "Remove permission",
            lambda _request, row: (
                f"Users with the role {row.role} lose the permission {row.permission},"
                " except if they also have it directly or from another role."
            ),
            _remove_from_role,
            is_dangerous=True,
        ),
    )

    def heading_of(self, row: RolePermission) -> str:
        return f"{row.permission} of {row.role}"


class UserPermissionAdmin(ReadOnlyAdmin[UserPermission], ObjectActionsAdmin[UserPermission]):
    list_display = ("user", "permission", "created_at", "tenant")
    list_select_related = ("user", "permission", "tenant")
    search_fields = ("=user__user_id", "=permission__value")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "permission", "created_at")
    empty_text = "No permissions of users. To add permissions, open the page of a user."
    object_actions = (
        ObjectAction(
            "remove",
            "Remove permission",
            lambda _request, row: (
                f"{label_of(row.user)} loses the permission {row.permission}, except if the user also has it from a role."
            ),
            _remove_from_user,
            is_dangerous=True,
        ),
    )

    def heading_of(self, row: UserPermission) -> str:
        return f"{row.permission} of {label_of(row.user)}"


class OrganizationClientGrantAdmin(ReadOnlyAdmin[OrganizationClientGrant]):
    titled = "Client grant in {row.organization}"
    list_display = ("organization", "client_grant", "created_at", "tenant")
    list_select_related = ("organization", "client_grant", "tenant")
    search_fields = ("=organization__id", "=client_grant__id")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "organization", "client_grant", "created_at")
    empty_text = "No client grants in organizations. Add one with the management interface: POST /api/v2/organizations/{id}/client-grants."


def add_permission_tables(site: admin.AdminSite) -> None:
    """Add the tables to the pages of roles and users, if the site has these pages."""
    if site.is_registered(Role) and site.is_registered(User):
        roles, users = site.get_model_admin(Role), site.get_model_admin(User)
        if isinstance(roles, ObjectActionsAdmin) and isinstance(users, ObjectActionsAdmin):
            PermissionPanels(site).add_to(roles, users)
