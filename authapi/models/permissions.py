"""Permissions: scopes of APIs that roles and users have, and the organizations in which a client grant is valid."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from authapi.models.resources import ApiResource, ClientGrant


class Permission(UnrecordedOwned):
    """A scope of an API that a role or a user has. The row is created when the scope is first assigned, and deleted with the scope."""

    api_resource = models.ForeignKey(ApiResource, on_delete=models.CASCADE, related_name="permissions")
    value = models.CharField(max_length=280)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["api_resource", "value"], name="authapi_permission_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="authapi_permission_tenant_id_unique"),
        ]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.value


class RolePermission(UnrecordedOwned):
    """A permission of every user with a role. Its changes cause no events."""

    role = models.ForeignKey("identity.Role", on_delete=models.CASCADE, related_name="+")
    permission = models.ForeignKey(Permission, on_delete=models.CASCADE, related_name="role_permissions")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["role", "permission"], name="authapi_rolepermission_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_rolepermission_listed")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return f"{self.permission_id} of {self.role_id}"


class UserPermission(UnrecordedOwned):
    """A permission of one user. Its changes cause no events."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    permission = models.ForeignKey(Permission, on_delete=models.CASCADE, related_name="user_permissions")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "permission"], name="authapi_userpermission_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_userpermission_listed")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return f"{self.permission_id} of {self.user_id}"


class OrganizationClientGrant(UnrecordedOwned):
    """A client grant that is valid in an organization."""

    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, related_name="+")
    client_grant = models.ForeignKey(ClientGrant, on_delete=models.CASCADE, related_name="organization_grants")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["organization", "client_grant"], name="authapi_organizationclientgrant_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="authapi_orggrant_listed")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return f"{self.client_grant_id} in {self.organization_id}"
