"""Admin pages of permissions of roles and users. They are assigned with the management API."""

from __future__ import annotations

from authapi.models import OrganizationClientGrant, Permission, RolePermission, UserPermission
from identity.admin.tenant_scope import ReadOnlyAdmin


class PermissionAdmin(ReadOnlyAdmin[Permission]):
    grows = False
    list_display = ("value", "api_resource", "created_at", "tenant")
    list_filter = ("api_resource",)
    list_select_related = ("api_resource", "tenant")
    search_fields = ("=value",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "api_resource", "value", "created_at")
    empty_text = "No permissions yet. A permission appears when a role or a user gets it."


class RolePermissionAdmin(ReadOnlyAdmin[RolePermission]):
    list_display = ("role", "permission", "created_at", "tenant")
    list_select_related = ("role", "permission", "tenant")
    search_fields = ("=role__id", "=permission__value")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "role", "permission", "created_at")
    empty_text = "No permissions of roles. Assign them with POST /roles/{id}/permissions."


class UserPermissionAdmin(ReadOnlyAdmin[UserPermission]):
    list_display = ("user", "permission", "created_at", "tenant")
    list_select_related = ("user", "permission", "tenant")
    search_fields = ("=user__user_id", "=permission__value")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "permission", "created_at")
    empty_text = "No permissions of users. Assign them with POST /users/{id}/permissions."


class OrganizationClientGrantAdmin(ReadOnlyAdmin[OrganizationClientGrant]):
    list_display = ("organization", "client_grant", "created_at", "tenant")
    list_select_related = ("organization", "client_grant", "tenant")
    search_fields = ("=organization__id", "=client_grant__id")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "organization", "client_grant", "created_at")
    empty_text = "No client grants in organizations. Add one with POST /organizations/{id}/client-grants."
