"""Roles, and their assignments to users for the whole tenant."""

from __future__ import annotations

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from foundation.ids import new_role_id
from identity.models.base import DeletedInParts, TenantOwned


class Role(DeletedInParts, TenantOwned):
    """A named set of permissions, of the tenant or of one organization.

    Changes of a role record no event; its assignments to groups and members record events.
    """

    class Type(models.TextChoices):
        TENANT = "tenant"
        ORGANIZATION = "organization"

    id = models.CharField(primary_key=True, max_length=32, default=new_role_id, editable=False)
    name = models.CharField(max_length=50)
    description = models.CharField(max_length=255, blank=True)
    type = models.CharField(max_length=16, choices=Type, default=Type.TENANT)
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="own_roles")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(type="organization", organization__isnull=False) | Q(type="tenant", organization__isnull=True),
                name="identity_role_type_names_its_owner",
            ),
            models.UniqueConstraint("tenant", Coalesce("organization", Value("")), "name", name="identity_role_name_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_role_tenant_id_unique"),
        ]
        # Lists of a tenant's roles, oldest first.
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="identity_role_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class UserRole(TenantOwned):
    """A role of a user in the whole tenant. The assignment records no event."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="user_roles")
    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="user_roles")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "role"], name="identity_userrole_unique")]
        # The users of a role, oldest assignment first.
        indexes = [
            models.Index(fields=["role", "created_at", "id"], name="identity_userrole_of_role"),
            # The list in the admin, with pages by key.
            models.Index(fields=["tenant", "id"], name="identity_userrole_listed"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.user_id} has {self.role_id}"
