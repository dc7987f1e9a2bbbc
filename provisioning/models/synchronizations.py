"""Results of a synchronization per user, and the guard that holds a stream with mass deletions."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from identity.models import Job


class SynchronizationRow(models.Model):
    """The result for one user in a synchronization or comparison. The tenant of the row is the tenant of the job.

    The first thousand rows of each outcome are stored. All missing users are stored, because the list of the server's accounts,
    which is read later, may show that their accounts exist. All accounts without a user are stored, because the job may delete them later.
    """

    class Outcome(models.TextChoices):
        CREATED = "created", "Created"
        LINKED = "linked", "Linked"
        UPDATED = "updated", "Updated"
        UNCHANGED = "unchanged", "Unchanged"
        MISSING = "missing", "Missing on the server"
        UNSEARCHABLE = "unsearchable", "On the server, but not found by a search for its externalId"
        DIFFERENT = "different", "Different on the server"
        SKIPPED = "skipped", "Skipped"
        AMBIGUOUS = "ambiguous", "More than one account matches"
        FAILED = "failed", "Failed"
        EXTRA = "extra", "Account without a user"
        DELETED = "deleted", "Deleted"

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    outcome = models.CharField(max_length=16, choices=Outcome)
    user_id = models.CharField(max_length=400, help_text="The id of the user, or the correlation key of an account that has no user.")
    scim_id = models.CharField(max_length=512, blank=True)
    reason = models.TextField(blank=True, help_text="The reason why the user was skipped or failed. Secrets are masked.")
    error_class = models.CharField(max_length=32, blank=True)
    differences = models.JSONField(
        default=list,
        blank=True,
        help_text="The path, the value here and the value on the server. Values are masked unless they were requested.",
    )
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "synchronized user"
        ordering = ("job", "pk")
        indexes = [
            models.Index(fields=["job", "outcome", "id"], name="provisioning_syncrow_outcome"),
            # Keyset pagination of the admin's list.
            models.Index(fields=["job", "id"], name="provisioning_syncrow_listed"),
        ]
        constraints = [
            # With this constraint, a page of accounts that is read again after a crash adds no rows.
            models.UniqueConstraint(
                fields=["job", "scim_id"], condition=Q(outcome__in=("extra", "deleted")), name="provisioning_syncrow_extra_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.outcome}"


class DeletionGuard(models.Model):
    """Holds a stream if more than `threshold` deletions of users become deliveries of the stream within a period."""

    stream_id = models.CharField(primary_key=True, max_length=26)
    tenant_id = models.CharField(max_length=63)
    threshold = models.PositiveIntegerField(help_text="Number of deletions within a period that need no approval.")
    window_seconds = models.PositiveIntegerField(default=3600)
    window_began_at = models.DateTimeField(db_default=Now())
    counted = models.PositiveIntegerField(default=0, help_text="Deletions of users that became deliveries in this period.")
    staged_since = models.DateTimeField(null=True, blank=True, help_text="Time since which the deletions wait for approval.")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(window_seconds__gt=0), name="provisioning_deletionguard_window")]

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.threshold} in {self.window_seconds} s"
