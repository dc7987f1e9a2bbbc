"""Organizations, their connections, their members, and the roles that members and groups have in them."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from django.db import models

from foundation.ids import new_organization_id
from identity.models.base import DeletedInParts, RecordedModel

ACCESS_LEVELS = [("none", "None"), ("readonly", "Read only"), ("limited", "Limited"), ("full", "Full")]


class Organization(DeletedInParts, RecordedModel):
    """A customer of the tenant: a set of users with its own connections and roles."""

    id = models.CharField(primary_key=True, max_length=32, default=new_organization_id, editable=False)
    name = models.CharField(
        max_length=50,
        validators=[RegexValidator(r"^(?!org_)[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$", "A lower-case slug that does not start with org_.")],
    )
    display_name = models.CharField(max_length=255, blank=True)
    branding = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    extras = models.JSONField(default=dict, blank=True, help_text="Settings that are stored and returned without effect.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(RecordedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="identity_organization_name_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_organization_tenant_id_unique"),
        ]
        # Lists of a tenant's organizations, oldest first.
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="identity_organization_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class OrganizationRelation(RecordedModel):
    """A row that belongs to an organization. Its changes are delivered in order with the changes of the organization."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="%(class)s_rows")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(RecordedModel.Meta):
        abstract = True
        ordering = ("id",)

    def root(self) -> tuple[type[models.Model], Any]:
        return Organization, self.organization_id


class OrganizationConnection(OrganizationRelation):
    """A connection through which users log in to an organization."""

    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="organization_connections")
    assign_membership_on_login = models.BooleanField(default=False)
    show_as_button = models.BooleanField(default=True)
    is_signup_enabled = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    organization_connection_name = models.CharField(max_length=50, blank=True)
    organization_access_level = models.CharField(max_length=16, choices=ACCESS_LEVELS, blank=True)
    organization_member_access_level = models.CharField(max_length=16, choices=ACCESS_LEVELS, blank=True)

    class Meta(OrganizationRelation.Meta):
        constraints = [models.UniqueConstraint(fields=["organization", "connection"], name="identity_organizationconnection_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="identity_orgconnection_listed")]

    def __str__(self) -> str:
        return f"{self.connection_id} in {self.organization_id}"


class OrganizationMember(OrganizationRelation):
    """The membership of a user in an organization."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="organization_members")

    class Meta(OrganizationRelation.Meta):
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="identity_organizationmember_unique")]
        # The members of an organization, oldest first.
        indexes = [
            models.Index(fields=["organization", "created_at", "id"], name="identity_orgmember_list"),
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "id"], name="identity_orgmember_listed"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.organization_id}"


class OrganizationMemberRole(OrganizationRelation):
    """A role that a member has in an organization. Deleted together with the membership."""

    member = models.ForeignKey(OrganizationMember, on_delete=models.CASCADE, related_name="roles")
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="organization_member_roles")
    role = models.ForeignKey("identity.Role", on_delete=models.CASCADE, related_name="organization_member_roles")

    class Meta(OrganizationRelation.Meta):
        constraints = [models.UniqueConstraint(fields=["member", "role"], name="identity_organizationmemberrole_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="identity_orgmemberrole_listed")]

    def __str__(self) -> str:
        return f"{self.role_id} of {self.user_id} in {self.organization_id}"


class OrganizationGroupRole(OrganizationRelation):
    """A role that the members of a group have in an organization."""

    group = models.ForeignKey("identity.Group", on_delete=models.CASCADE, related_name="organization_roles")
    role = models.ForeignKey("identity.Role", on_delete=models.CASCADE, related_name="organization_group_roles")

    class Meta(OrganizationRelation.Meta):
        constraints = [models.UniqueConstraint(fields=["organization", "group", "role"], name="identity_organizationgrouprole_unique")]
        # Serves the list in the admin: each page starts after the last row of the page before.
        indexes = [models.Index(fields=["tenant", "id"], name="identity_orggrouprole_listed")]

    def __str__(self) -> str:
        return f"{self.role_id} of {self.group_id} in {self.organization_id}"
