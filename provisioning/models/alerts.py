"""Alerts about dead letters and held streams: each row is one that was raised, and the claim to send it once."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Alert(models.Model):
    """One thing that people are told of, at most once per stream, kind and period. The unique constraint decides who raises it."""

    class Kind(models.TextChoices):
        NEW_FAILURE = "new_failure", "A failure of a new kind"
        MANY_OPEN = "many_open", "Many open dead letters"
        OLD_OPEN = "old_open", "An old open dead letter"
        HELD = "held", "The stream is held"
        NOT_FOUND = "not_found", "Many users are not found on the server"

    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    kind = models.CharField(max_length=16, choices=Kind)
    fingerprint = models.CharField(max_length=32, blank=True, help_text="Of a failure of a new kind.")
    period = models.DateTimeField(help_text="Begin of the period in which it is not raised again.")
    facts = models.JSONField(default=dict, help_text="Counts, times and kinds; never what a server answered.")
    created_at = models.DateTimeField(db_default=Now())
    taken_at = models.DateTimeField(null=True, help_text="When a worker began to send it; nobody sends it a second time.")
    mailed_to = models.PositiveIntegerField(default=0, help_text="Accounts that were mailed.")
    posted_at = models.DateTimeField(null=True, help_text="When the webhook took it.")
    problem = models.CharField(max_length=256, blank=True, help_text="Why it did not reach everybody.")

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
