"""Groups, their members and their roles."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from foundation.ids import new_group_id
from identity.models.base import DeletedInParts, RecordedModel


class Group(DeletedInParts, RecordedModel):
    """A set of users: of a connection's directory, of an organization, or of the whole tenant."""

    class Type(models.TextChoices):
        CONNECTION = "connection"
        ORGANIZATION = "organization"
        TENANT = "tenant"

    id = models.CharField(primary_key=True, max_length=32, default=new_group_id, editable=False)
    type = models.CharField(max_length=16, choices=Type, default=Type.TENANT)
    name = models.CharField(max_length=128, validators=[RegexValidator(r"^[ -~]+$", "Printable ASCII characters.")])
    external_id = models.CharField(max_length=256, null=True, blank=True)
    description = models.CharField(max_length=512, blank=True)
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, null=True, blank=True, related_name="groups")
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, null=True, blank=True, related_name="groups")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(RecordedModel.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(type="connection", connection__isnull=False, organization__isnull=True)
                | Q(type="organization", connection__isnull=True, organization__isnull=False)
                | Q(type="tenant", connection__isnull=True, organization__isnull=True),
                name="identity_group_type_names_its_owner",
            ),
            models.UniqueConstraint(
                "tenant", Coalesce("connection", Value("")), Coalesce("organization", Value("")), "name", name="identity_group_name_unique"
            ),
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_group_tenant_id_unique"),
        ]
        # Lists of a tenant's groups, oldest first.
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="identity_group_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class GroupRelation(RecordedModel):
    """A row that belongs to a group. Its events are delivered in order with the events of the group."""

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="%(class)s_rows")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(RecordedModel.Meta):
        abstract = True
        ordering = ("id",)

    def root(self) -> tuple[type[models.Model], Any]:
        return Group, self.group_id


class GroupMember(GroupRelation):
    """A member of a group: a user, or a nested group of a connection's directory."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="group_members")
    nested_group = models.ForeignKey(Group, on_delete=models.CASCADE, null=True, blank=True, related_name="parent_members")

    class Meta(GroupRelation.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, nested_group__isnull=True) | Q(user__isnull=True, nested_group__isnull=False),
                name="identity_groupmember_is_one_of_both",
            ),
            models.UniqueConstraint(fields=["group", "user"], name="identity_groupmember_user_unique"),
            models.UniqueConstraint(fields=["group", "nested_group"], name="identity_groupmember_group_unique"),
        ]
        # The members of a group, oldest first.
        indexes = [
            models.Index(fields=["group", "created_at", "id"], name="identity_groupmember_list"),
            # For the keyset pagination of the list in the admin.
            models.Index(fields=["tenant", "id"], name="identity_groupmember_listed"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id or self.nested_group_id} in {self.group_id}"


class GroupRole(GroupRelation):
    """A role that every member of a group has in the whole tenant."""

    role = models.ForeignKey("identity.Role", on_delete=models.CASCADE, related_name="group_roles")

    class Meta(GroupRelation.Meta):
        constraints = [models.UniqueConstraint(fields=["group", "role"], name="identity_grouprole_unique")]
        # For the keyset pagination of the list in the admin.
        indexes = [models.Index(fields=["tenant", "id"], name="identity_grouprole_listed")]

    def __str__(self) -> str:
        return f"{self.role_id} of {self.group_id}"
