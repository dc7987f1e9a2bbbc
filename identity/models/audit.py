"""The audit log: what people and clients changed, each entry written in the transaction of the change and never changed after."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """One change of one row, or one act that changed no row.

    `before` and `after` hold what differs, a whole row where it came or went; what is secret is only said to be there. Triggers
    refuse every change of an entry, and every deletion but that of the retention. There is no foreign key: what an entry
    names may go, the entry stays.
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
            # The list of a tenant, and that of the platform, newest first.
            models.Index(fields=["tenant_id", "at", "id"], name="identity_audit_by_tenant"),
            models.Index(fields=["at", "id"], name="identity_audit_by_time"),
            # Everything that somebody did, and everything that was done to something.
            models.Index(fields=["actor_name", "at", "id"], name="identity_audit_by_actor"),
            models.Index(fields=["object_id", "at", "id"], name="identity_audit_by_object"),
            # What belongs to one request.
            models.Index(fields=["act_id"], name="identity_audit_by_act"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.object_text or self.act}"
