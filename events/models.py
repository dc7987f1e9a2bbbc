"""The tables of the event stream. `events.record` and `events.log` write events, marks, positions and heads.

These tables have no database foreign keys to the tenant or to each other, because with foreign keys a purge would deadlock with numbering.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from foundation.ids import new_stream_id
from identity.models.base import TenantOwned


class Event(models.Model):
    """One change as final bytes: the envelope that the tenant's built-in stream delivers.

    `id` follows the order of insertion; `position` in the log is assigned after commit.
    """

    id = models.BigAutoField(primary_key=True)
    event_id = models.CharField(max_length=26, unique=True)
    tenant_id = models.CharField(max_length=63)
    type = models.CharField(max_length=64)
    root = models.CharField(
        max_length=400,
        help_text="The document of the event, or its parent, as <kind>:<id>. Events with the same root are delivered in order.",
    )
    time = models.DateTimeField()
    body = models.BinaryField()
    trace = models.BinaryField(
        null=True, help_text="The ids of the trace and the span of the recording, as 24 bytes. Set only if tracing was on (ADR 0135)."
    )

    class Meta:
        indexes = [
            models.Index(fields=["tenant_id", "root", "id"], name="events_event_by_root"),
            # Serves the search of the log browser for one type, usually a rare type.
            models.Index(fields=["tenant_id", "type", "id"], name="events_event_by_type"),
        ]

    def __str__(self) -> str:
        return self.event_id


class Outbox(models.Model):
    """An event without a position."""

    event = models.BigIntegerField(primary_key=True)
    tenant_id = models.CharField(max_length=63)

    class Meta:
        verbose_name_plural = "outbox"
        # Serves two queries: for the oldest events of a tenant in this table, and for all tenants that have events in it.
        indexes = [models.Index(fields=["tenant_id", "event"], name="events_outbox_by_tenant")]

    def __str__(self) -> str:
        return f"{self.tenant_id}:{self.event}"


class LogEntry(models.Model):
    """The position of an event in its tenant's log: dense, and in commit order per document."""

    event = models.OneToOneField(Event, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="log_entry")
    tenant_id = models.CharField(max_length=63)
    position = models.BigIntegerField()
    recorded_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "log entries"
        constraints = [models.UniqueConstraint(fields=["tenant_id", "position"], name="events_logentry_position_unique")]
        indexes = [models.Index(fields=["tenant_id", "recorded_at", "position"], name="events_logentry_by_time")]

    def __str__(self) -> str:
        return f"{self.tenant_id}:{self.position}"


class Head(models.Model):
    """The bounds of a tenant's log. The row is created with the tenant; a tenant without such a row was deleted."""

    tenant_id = models.CharField(primary_key=True, max_length=63)
    epoch = models.PositiveIntegerField(
        default=1, help_text="Part of every cursor. After a restore of the log, the epoch is raised and older cursors are refused."
    )
    position = models.BigIntegerField(default=0, help_text="The position of the last event.")
    recorded_at = models.DateTimeField(db_default=Now())
    floor = models.BigIntegerField(default=0, help_text="The position of the last event that was deleted at the end of its retention.")
    floor_recorded_at = models.DateTimeField(
        null=True, help_text="When the last event that was deleted at the end of its retention was recorded."
    )
    stream_id = models.CharField(
        max_length=26,
        unique=True,
        default=new_stream_id,
        help_text="The id of the built-in stream. Every event that GET /events returns contains this id.",
    )
    timeline = models.BigIntegerField(
        null=True,
        help_text="The timeline of PostgreSQL on which the last event got its position. Each promotion, and each recovery to a point in "
        "time, begins a new timeline.",
    )

    def __str__(self) -> str:
        return f"{self.tenant_id}@{self.position}"


class DatabaseIdentity(models.Model):
    """The identity of the database in which the logs were last known to be complete.

    The table has one row, which is compared with the identity of the server at each start.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    system_identifier = models.CharField(max_length=20, help_text="Created by initdb. A promoted standby has the same value.")
    timeline = models.BigIntegerField(help_text="Increased by each promotion and each recovery to a point in time.")
    noted_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "database identities"
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="events_databaseidentity_single")]

    def __str__(self) -> str:
        return f"{self.system_identifier}/{self.timeline}"


class Timeline(models.Model):
    """A timeline of PostgreSQL on which logs were numbered; a promotion, or a recovery to a point in time, begins the next timeline."""

    system_identifier = models.CharField(max_length=20, help_text="Created by initdb. A promoted standby has the same value.")
    timeline = models.BigIntegerField()
    is_replicated = models.BooleanField(default=False, help_text="Every numbering on this timeline waited for a synchronous standby.")
    noted_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["system_identifier", "timeline"], name="events_timeline_unique")]

    def __str__(self) -> str:
        return f"{self.system_identifier}/{self.timeline}"


class Mark(models.Model):
    """A change of a recorded row that no event describes yet. `image` is the row before the change, null if the row did not exist.

    A trigger of the tripwire writes the mark, and the recorder deletes it in the same transaction. If a mark is committed, the change
    was not recorded.
    """

    table_name = models.CharField(max_length=63)
    row_key = models.CharField(max_length=64)
    document_key = models.CharField(max_length=64)
    document_table = models.CharField(max_length=63)
    tenant_id = models.CharField(max_length=63)
    image = models.JSONField(null=True)
    marked_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["table_name", "row_key", "document_key"], name="events_mark_row_unique")]
        indexes = [models.Index(fields=["document_table", "document_key"], name="events_mark_by_document")]

    def __str__(self) -> str:
        return f"{self.table_name}:{self.row_key}"


class Tally(models.Model):
    """A counter in the database, which does not start at zero when a process restarts."""

    name = models.CharField(primary_key=True, max_length=32)
    count = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "tallies"

    def __str__(self) -> str:
        return f"{self.name}: {self.count}"


class EventStream(TenantOwned):
    """A subscription of one destination to a tenant's events."""

    class Status(models.TextChoices):
        ENABLED = "enabled"
        DISABLED = "disabled"

    id = models.CharField(primary_key=True, max_length=26, default=new_stream_id, editable=False)
    name = models.CharField(max_length=128, null=True, blank=True)
    subscriptions = models.JSONField(default=list, help_text="Event types, such as user.created.")
    destination_type = models.CharField(max_length=16, choices=[("action", "Action"), ("webhook", "Webhook")], default="action")
    destination = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.ENABLED)
    position = models.BigIntegerField(default=0, help_text="The position of the last event that the stream has taken from the log.")
    held_since = models.DateTimeField(null=True, blank=True)
    held_reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="events_eventstream_name_unique")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name or self.id
