"""Roles, and the users who have them in the whole tenant."""

from __future__ import annotations

from django.db import models

from identity.ids import new_role_id
from identity.models.base import TenantOwned


class Role(TenantOwned):
    """A named set of permissions. It has no event of its own; assigning it to groups and members does."""

    id = models.CharField(primary_key=True, max_length=32, default=new_role_id, editable=False)
    name = models.CharField(max_length=50)
    description = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="identity_role_name_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_role_tenant_id_unique"),
        ]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class UserRole(TenantOwned):
    """A role of a user in the whole tenant. No event type stands for it."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="user_roles")
    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="user_roles")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "role"], name="identity_userrole_unique")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.user_id} has {self.role_id}"
