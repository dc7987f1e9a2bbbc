"""Deliveries, one per stream and event, and their attempts. Only the module `lanes` writes the state of a delivery."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class FailureClass(models.TextChoices):
    """Classes of failures, with the values of `provisioning.runs.failures`. The class of a failure determines the next step."""

    TRANSIENT = "transient", "Transient: the destination was busy or unreachable"
    CONFIGURATION = "configuration", "Configuration: the destination refuses every request"
    DATA = "data", "Data: the destination refuses the data of this event"
    SHAPE = "shape", "Shape: the response is malformed"
    ACTION = "action", "Action: the action itself failed"
    MISCONFIGURED = "misconfigured", "Misconfigured: the action cannot run"
    LOST = "lost", "Lost: the worker ended during the attempt"
    MISSING = "missing", "Missing: the event is no longer in the log"


class Delivery(models.Model):
    """One event that is to be sent to the destination of one stream."""

    class State(models.TextChoices):
        TODO = "todo", "Waiting"
        DELIVERED = "delivered", "Delivered"
        SKIPPED = "skipped", "Skipped"
        DEAD = "dead", "Dead letter"
        SUPERSEDED = "superseded", "Superseded"

    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    key = models.CharField(max_length=400, help_text="Identifies the lane. Events with the same key are delivered in order.")
    position = models.BigIntegerField(help_text="The event's position in the tenant's log.")
    event = models.BigIntegerField(help_text="Primary key of the event's row.")
    event_id = models.CharField(max_length=26)
    event_type = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State, default=State.TODO)
    is_written = models.BooleanField(default=False, help_text="The event was written to the destination.")

    attempts = models.PositiveIntegerField(default=0, help_text="All attempts, counted when they start.")
    series_attempts = models.PositiveIntegerField(default=0, help_text="Attempts since the event was dispatched or last redelivered.")
    redeliveries = models.PositiveIntegerField(default=0)
    is_forced = models.BooleanField(default=False, help_text="Redelivered although a newer event was written.")
    created_at = models.DateTimeField(db_default=Now())
    first_attempt_at = models.DateTimeField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    reason = models.CharField(
        max_length=128, blank=True, help_text="Why the event was skipped or superseded, or which operation was performed."
    )
    detail = models.JSONField(default=dict)
    error_class = models.CharField(max_length=16, choices=FailureClass, blank=True)
    error_status = models.PositiveIntegerField(null=True, help_text="HTTP status of the last failure.")
    error_scim_type = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)
    error_fingerprint = models.CharField(max_length=32, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [models.UniqueConstraint(fields=["stream_id", "event"], name="provisioning_delivery_stream_event_unique")]
        indexes = [
            models.Index(fields=["stream_id", "key", "position"], condition=Q(state="todo"), name="provisioning_delivery_waiting"),
            models.Index(fields=["stream_id", "key", "position"], condition=Q(is_written=True), name="provisioning_delivery_written"),
            # The next index serves the management interface, which lists failures per stream. The index after it serves the admin, which
            # lists deliveries of a tenant, newest first.
            models.Index(fields=["stream_id", "id"], condition=Q(state="dead"), name="provisioning_delivery_dead"),
            models.Index(fields=["tenant_id", "id"], name="provisioning_delivery_listed"),
            models.Index(fields=["event_id"], name="provisioning_delivery_by_event"),
            # This index serves the count of a stream's users who were not found on the server (`engine.not_found`).
            models.Index(
                fields=["stream_id", "created_at"],
                condition=Q(state="skipped", reason__in=("no user to update", "no user to delete")),
                name="provisioning_delivery_notfound",
            ),
            BrinIndex(fields=["created_at"], name="provisioning_delivery_by_age", pages_per_range=32),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"


class Attempt(models.Model):
    """One attempt of a delivery: start, duration, outcome, and after a failure also the HTTP exchanges with masked secrets."""

    class Outcome(models.TextChoices):
        DELIVERED = "delivered", "Delivered"
        SKIPPED = "skipped", "Skipped"
        FAILED = "failed", "Failed"
        HELD = "held", "Held: the stream was held, so the attempt does not count"
        LOST = "lost", "Lost: the worker ended"

    class Trigger(models.TextChoices):
        SCHEDULED = "scheduled", "Automatic"
        MANUAL = "manual", "Redelivered by hand"
        CURRENT_PROFILE = "current", "Redelivered by hand, with the current profile"

    # This column has no separate index, because the index of the unique constraint below begins with it.
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="tries")
    tenant_id = models.CharField(max_length=63)
    number = models.PositiveIntegerField()
    trigger = models.CharField(max_length=16, choices=Trigger, default=Trigger.SCHEDULED)
    started_at = models.DateTimeField()
    duration_ms = models.FloatField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome)
    error_class = models.CharField(max_length=16, choices=FailureClass, blank=True)
    error_status = models.PositiveIntegerField(null=True)
    error_scim_type = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)
    retry_at = models.DateTimeField(null=True, help_text="The time for which the next attempt was planned.")
    exchanges = models.JSONField(default=list, help_text="HTTP exchanges; secrets are masked before storage.")
    log_lines = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="provisioning_attempt_number_unique")]
        # The exchanges of failed attempts are deleted earlier than the rows of these attempts. The first index finds attempts that still
        # have exchanges.
        indexes = [
            models.Index(fields=["started_at"], condition=~Q(exchanges=[]), name="provisioning_attempt_bodies"),
            # Keyset pagination of the admin's list.
            models.Index(fields=["tenant_id", "id"], name="provisioning_attempt_listed"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.outcome}"
