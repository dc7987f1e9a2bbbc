"""Dead letters: deliveries that used up their attempts, each with its own copy of the event, and decisions about them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioning.models.deliveries import Delivery, FailureClass


class DeadLetter(models.Model):
    """An event that the destination of its stream did not accept. `body` contains the envelope, so the event can be redelivered after the
    log was pruned.
    """

    class State(models.TextChoices):
        OPEN = "open", "Open"
        ACKNOWLEDGED = "acknowledged", "Acknowledged"
        IGNORED = "ignored", "Ignored"
        REDELIVERED = "redelivered", "Being redelivered"
        RESOLVED = "resolved", "Resolved"

    delivery = models.OneToOneField(Delivery, on_delete=models.CASCADE, db_constraint=False, related_name="dead_letter")
    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    key = models.CharField(max_length=400)
    event_id = models.CharField(max_length=26)
    event_type = models.CharField(max_length=64)
    body = models.BinaryField(null=True, help_text="The envelope; empty if the event was already pruned from the log.")
    rebuilt_body = models.BinaryField(
        null=True, help_text="Envelope that is sent instead: the event with the current profile at the time of the request."
    )
    rebuilt_position = models.BigIntegerField(null=True, help_text="Position of the head of the log when the envelope was built.")
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    reason = models.TextField(help_text="Error of the last attempt.")
    error_class = models.CharField(max_length=16, choices=FailureClass)
    error_status = models.PositiveIntegerField(null=True)
    error_scim_type = models.CharField(max_length=64, blank=True)
    fingerprint = models.CharField(max_length=32, help_text="Identifies the kind of failure. Search for it to find the same failures.")
    attempts = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    redelivered_at = models.DateTimeField(null=True)
    redelivered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, db_constraint=False, related_name="+"
    )
    redelivery_actor = models.CharField(
        max_length=254, blank=True, help_text="Account that redelivered the dead letter; kept when the account is deleted."
    )
    redelivery_reason = models.TextField(blank=True)
    redelivery_job = models.CharField(
        max_length=32, blank=True, db_default="", db_column="redrive", help_text="The last redelivery job that queued the event again."
    )
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=128, blank=True)
    triaged_at = models.DateTimeField(null=True)
    triage_actor = models.CharField(
        max_length=254, blank=True, db_default="", help_text="Account that acknowledged, ignored or resolved the dead letter."
    )
    triage_reason = models.TextField(blank=True, db_default="")

    class Meta:
        permissions = [
            ("view_deadletter_bodies", "Can see events and exchanges of dead letters"),
            ("redeliver_deadletter", "Can redeliver dead letters"),
            ("force_deadletter", "Can redeliver over a newer event"),
            ("triage_deadletter", "Can acknowledge, ignore and resolve dead letters"),
            ("export_deadletter", "Can export dead letters"),
        ]
        indexes = [
            # Keyset pagination of the admin's list.
            models.Index(fields=["tenant_id", "id"], name="provisioning_dead_by_age"),
            models.Index(fields=["tenant_id", "state", "id"], name="provisioning_dead_listed"),
            models.Index(fields=["tenant_id", "fingerprint", "stream_id", "id"], name="provisioning_dead_by_kind"),
            # Redelivery jobs read by key, which keeps the events of each user in order. The search by user also uses this index.
            models.Index(fields=["tenant_id", "key", "stream_id"], name="provisioning_dead_by_key"),
            # Kinds of failures are counted, newest first, with an index-only scan of this index.
            models.Index(
                fields=["tenant_id", "id"],
                include=["stream_id", "fingerprint", "state", "key", "created_at"],
                condition=Q(state__in=("open", "acknowledged", "ignored")),
                name="provisioning_dead_unsettled",
            ),
            # Once a minute, the code of the alerts uses this index to find the number of open dead letters, the oldest open dead letter,
            # and new kinds of failure.
            models.Index(fields=["stream_id", "created_at"], condition=Q(state="open"), name="provisioning_dead_open"),
            models.Index(fields=["redelivery_job", "state"], condition=~Q(redelivery_job=""), name="provisioning_dead_by_redrive"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"


class IgnoredKind(models.Model):
    """A kind of failure on one stream that is ignored until a date. Until then, new dead letters of this kind start as ignored."""

    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63, db_index=True)
    fingerprint = models.CharField(max_length=32)
    until = models.DateTimeField()
    actor = models.CharField(max_length=254)
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream_id", "fingerprint"], name="provisioning_ignoredkind_unique")]

    def __str__(self) -> str:
        return f"{self.fingerprint} until {self.until:%Y-%m-%d %H:%M}"
