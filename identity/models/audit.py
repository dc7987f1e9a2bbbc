"""The audit log: changes by staff and clients. Each entry is written in the transaction of its change and never modified."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """One change of one row, or one act that changed no row.

    `before` and `after` contain only the differences, or the whole row if it was added or deleted. Secrets are replaced by a marker.
    Triggers refuse changes and deletions of entries, except by the retention, the redaction of connection secrets, and the removal of an
    imported tenant before it is opened. There are no foreign keys, so an entry
    outlives the rows that it names.
    """

    class Kind(models.TextChoices):
        ADD = "add", "Added"
        CHANGE = "change", "Changed"
        DELETE = "delete", "Deleted"
        ACT = "act", "Done"

    tenant_id = models.CharField(max_length=63, null=True, editable=False)
    at = models.DateTimeField(default=timezone.now)
    act_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind)
    act = models.CharField(max_length=200, blank=True, help_text="The button, page or command.")
    object_type = models.CharField(max_length=100, blank=True)
    object_id = models.CharField(max_length=400, blank=True)
    object_text = models.CharField(max_length=200, blank=True)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=128, blank=True)
    actor_name = models.CharField(max_length=254)
    ip = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    facts = models.JSONField(default=dict)

    objects: ClassVar[models.Manager[AuditEntry]] = models.Manager()

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        indexes = [
            # The lists of a tenant and of the platform, newest first.
            models.Index(fields=["tenant_id", "at", "id"], name="identity_audit_by_tenant"),
            models.Index(fields=["at", "id"], name="identity_audit_by_time"),
            # All acts of an actor, and all acts on an object.
            models.Index(fields=["actor_name", "at", "id"], name="identity_audit_by_actor"),
            models.Index(fields=["object_id", "at", "id"], name="identity_audit_by_object"),
            # All entries of one act.
            models.Index(fields=["act_id"], name="identity_audit_by_act"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.object_text or self.act}"

    @property
    def is_by_command(self) -> bool:
        """Whether a command made the change."""
        return self.act.startswith("manage.py ")

    @property
    def done(self) -> str:
        """What was done: a command with the kind of its change, otherwise the button or page."""
        if self.is_by_command:
            return f"{self.get_kind_display()} by {self.act}"
        return str(self.act or self.get_kind_display())
