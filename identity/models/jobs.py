"""Jobs: long work for a tenant, in chunks of one transaction each, so that an interrupted job can resume."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from foundation.ids import new_job_id
from identity.models.base import TenantOwned


class Job(TenantOwned):
    """Long work for a tenant. `summary` contains the counts; each chunk updates its counts in its own transaction."""

    class Type(models.TextChoices):
        USERS_IMPORT = "users_import", "Import of users"
        USERS_EXPORT = "users_export", "Export of users"
        VERIFICATION_EMAIL = "verification_email"
        PASSWORD_RESET_EMAIL = "password_reset_email"  # noqa: S105  (the name of a job)
        UNBLOCK_EMAIL = "unblock_email"
        LEAKED_PASSWORD_EMAIL = "leaked_password_email", "Breached password email"
        NEW_DEVICE_EMAIL = "new_device_email", "New browser email"
        PASSWORDLESS_CODE = "passwordless_code", "Code or link for a login"
        MESSAGE = "message", "Email or text message"
        CONNECTION_DELETION = "connection_deletion"
        ORGANIZATION_DELETION = "organization_deletion"
        GROUP_DELETION = "group_deletion"
        ROLE_DELETION = "role_deletion"
        TENANT_DELETION = "tenant_deletion"
        EVENT_REDELIVERY = "event_redelivery", "Redelivery of events"
        STREAM_SYNCHRONIZATION = "stream_synchronization", "Synchronization of a stream"
        STREAM_RECONCILIATION = "stream_reconciliation", "Comparison of a stream"
        BULK_ACTION = "bulk_action", "Action on many rows"

    class Status(models.TextChoices):
        PENDING = "pending"
        PROCESSING = "processing"
        COMPLETED = "completed"
        FAILED = "failed"

    id = models.CharField(primary_key=True, max_length=32, default=new_job_id, editable=False)
    type = models.CharField(max_length=32, choices=Type)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    connection = models.ForeignKey("identity.Connection", on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs")
    target = models.CharField(max_length=64, blank=True, help_text="Id of the deleted object, or the stream that the job works on.")
    parameters = models.JSONField(default=dict, blank=True)
    summary = models.JSONField(default=dict, blank=True)
    status_details = models.CharField(max_length=500, blank=True)
    events_cursor = models.CharField(max_length=64, blank=True, help_text="Cursor of the event stream before the snapshot.")
    # If a worker dies, its lease expires and the sweep sends the job to another worker.
    lease_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="Unexpected errors since the last successful chunk.")
    has_effect_due = models.BooleanField(default=False, help_text="Whether an effect outside the database, such as a mail, is still due.")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        ordering = ("-created_at", "id")
        indexes = [
            # Serves the list in the admin, which has pages by key.
            models.Index(fields=["tenant", "created_at", "id"], name="identity_job_listed"),
            models.Index(fields=["status", "lease_until"], name="identity_job_unfinished"),
            # Running bulk acts on the rows of a list.
            models.Index(
                fields=["tenant", "created_at"],
                name="identity_job_bulk_at_work",
                condition=models.Q(type="bulk_action", status__in=("pending", "processing")),
            ),
            # Jobs past their retention.
            models.Index(fields=["finished_at"], name="identity_job_finished"),
        ]
        constraints = [
            # At most one unfinished job per target. The service also finds the job of a target by this index.
            models.UniqueConstraint(
                fields=["tenant", "target"],
                condition=models.Q(status__in=("pending", "processing")) & ~models.Q(target=""),
                name="identity_job_one_deletion_per_target",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_finished(self) -> bool:
        return self.status in (self.Status.COMPLETED, self.Status.FAILED)

    @property
    def waits_for_answer(self) -> bool:
        """Whether the job waits for an answer of staff. `status_details` contains the question."""
        return not self.is_finished and bool(self.parameters.get("waits_for"))

    @property
    def rows_done(self) -> int:
        """The number of processed rows of the input or output."""
        return sum(int(self.summary.get(name, 0)) for name in ("inserted", "updated", "failed", "exported", "done", "gone"))

    @property
    def percentage_done(self) -> int:
        """Whole percent, rounded down. A job without counts has 0 until it completes."""
        if self.status == self.Status.COMPLETED:
            return 100
        total = int(self.summary.get("total", 0) or 0)
        return min(100 * self.rows_done // total, 99) if total else 0

    def seconds_left(self, now: datetime) -> int | None:
        """Estimate the remaining seconds from the rate so far. None before an estimate exists, 0 for a finished job."""
        if self.is_finished:
            return 0
        total, done = int(self.summary.get("total", 0) or 0), self.rows_done
        if self.started_at is None or not done or not total:
            return None
        return max(round((now - self.started_at).total_seconds() * (total - done) / done), 0)


class JobChunk(models.Model):
    """A part of a job's input or output with some hundred rows.

    Chunks are ordered by `number`. For a chunk of input, this is the number of its first row; for a chunk of output, the number of the
    piece.

    Input `content` is compressed and encrypted, because rows contain password hashes. Output `content` is a piece of a gzip file.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    content = models.BinaryField(default=b"")
    is_done = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="identity_jobchunk_unique")]
        ordering = ("job", "number")

    def __str__(self) -> str:
        return f"{self.job_id}/{self.number}"


class JobError(models.Model):
    """A failed row of an import (stored without its hashes) or of a bulk act of the admin, with its errors."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="errors")
    row_number = models.PositiveIntegerField()
    user = models.JSONField()
    errors = models.JSONField()

    class Meta:
        # Serves the list in the admin, which has pages by key.
        indexes = [models.Index(fields=["job", "row_number", "id"], name="identity_joberror_listed")]
        ordering = ("job", "row_number")

    def __str__(self) -> str:
        return f"{self.job_id}:{self.row_number}"


class JobUser(models.Model):
    """A user that a running import has written. By this row, the import detects a second row of the file for the same user."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="users")
    user_key = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "user_key"], name="identity_jobuser_unique")]

    def __str__(self) -> str:
        return f"{self.job_id}: user {self.user_key}"
