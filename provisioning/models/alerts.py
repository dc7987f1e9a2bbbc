"""Alerts about dead letters and held streams. Each row is a raised alert. The unique constraint of the row ensures that the alert is sent
at most once.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Alert(models.Model):
    """An alert, raised at most once per stream, kind and period: the unique constraint decides between concurrent sweepers."""

    class Kind(models.TextChoices):
        NEW_FAILURE = "new_failure", "A failure of a new kind"
        MANY_OPEN = "many_open", "Many open dead letters"
        OLD_OPEN = "old_open", "An old open dead letter"
        HELD = "held", "The stream is held"
        NOT_FOUND = "not_found", "Many users are not found on the server"

    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    kind = models.CharField(max_length=16, choices=Kind)
    fingerprint = models.CharField(max_length=32, blank=True, help_text="Fingerprint of the failure, for failures of a new kind.")
    period = models.DateTimeField(help_text="Start of the period in which the alert is not raised again.")
    facts = models.JSONField(default=dict, help_text="Counts, times and kinds; never content of a response.")
    created_at = models.DateTimeField(db_default=Now())
    taken_at = models.DateTimeField(null=True, help_text="When a worker began to send the alert. The alert is not sent again.")
    mailed_to = models.PositiveIntegerField(default=0, help_text="Number of staff accounts to which the alert was mailed.")
    posted_at = models.DateTimeField(null=True, help_text="When the webhook accepted the alert.")
    problem = models.CharField("sending error", max_length=256, blank=True, help_text="Which mails or webhook calls failed.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["stream_id", "kind", "fingerprint", "period"], name="provisioning_alert_once_per_period")
        ]
        indexes = [
            models.Index(fields=["tenant_id", "id"], name="provisioning_alert_listed"),
            models.Index(fields=["id"], condition=models.Q(taken_at__isnull=True), name="provisioning_alert_unsent"),
            models.Index(fields=["created_at"], name="provisioning_alert_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.stream_id}"
