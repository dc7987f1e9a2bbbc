"""Actions: what a stream runs for each event, their options, their mapping table and their secrets."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from identity.models.base import TenantOwned

SCIM_USER_PROVISIONING = "scim-user-provisioning"


class Action(TenantOwned):
    """A template or an installed entry point, set up by one tenant. A stream may be bound to it once it is deployed."""

    class Status(models.TextChoices):
        PENDING = "pending"
        BUILT = "built"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=255)
    template = models.CharField(max_length=64, blank=True, help_text="A template the service ships, such as scim-user-provisioning.")
    entry_point = models.CharField(max_length=255, blank=True, help_text="Dotted path of an installed action class.")
    options = models.JSONField(default=dict, blank=True, help_text="update_mode, upsert, adopt_on_conflict, enterprise.")
    mapping = models.JSONField(null=True, blank=True, help_text="Rows of the mapping table; empty means the default table.")
    capabilities = models.JSONField(default=dict, blank=True, editable=False, help_text="What probes of the server have shown.")
    status = models.CharField(max_length=16, choices=Status, default=Status.BUILT)
    is_deployed = models.BooleanField(default=False)
    built_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="provisioning_action_name_unique"),
            models.CheckConstraint(
                condition=Q(template="", entry_point__gt="") | Q(template__gt="", entry_point=""),
                name="provisioning_action_template_or_entry_point",
            ),
        ]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class ActionSecret(models.Model):
    """One secret of an action, sealed for its tenant, action and name. Written and used, never shown again.

    It has no tenant of its own: it is only ever reached through its action.
    """

    NAME_VALIDATOR: ClassVar[RegexValidator] = RegexValidator(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$", "Letters, digits and underscores.")

    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=128, validators=[NAME_VALIDATOR])
    sealed = models.TextField(editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "name"], name="provisioning_actionsecret_name_unique")]
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
