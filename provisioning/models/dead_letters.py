"""Dead letters: deliveries that used up their attempts, each with its own copy of the event."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from provisioning.models.deliveries import Delivery, FailureClass


class DeadLetter(models.Model):
    """An event that its stream's destination did not take. It outlives the log: `body` is the stored envelope."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        REDELIVERED = "redelivered", "Being redelivered"
        RESOLVED = "resolved", "Resolved"

    delivery = models.OneToOneField(Delivery, on_delete=models.CASCADE, db_constraint=False, related_name="dead_letter")
    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    key = models.CharField(max_length=400)
    event_id = models.CharField(max_length=26)
    event_type = models.CharField(max_length=64)
    body = models.BinaryField(null=True, help_text="The envelope; empty when the log had already dropped the event.")
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    reason = models.TextField(help_text="What the last attempt failed with.")
    error_class = models.CharField(max_length=16, choices=FailureClass)
    error_status = models.PositiveIntegerField(null=True)
    error_scim_type = models.CharField(max_length=64, blank=True)
    fingerprint = models.CharField(max_length=32, help_text="Equal for failures of one kind.")
    attempts = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    redelivered_at = models.DateTimeField(null=True)
    redelivered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, db_constraint=False, related_name="+"
    )
    redelivery_actor = models.CharField(max_length=254, blank=True, help_text="Who asked for it, kept when the account is gone.")
    redelivery_reason = models.TextField(blank=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=128, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["tenant_id", "state", "id"], name="provisioning_dead_listed"),
            models.Index(fields=["tenant_id", "fingerprint"], name="provisioning_dead_by_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"
