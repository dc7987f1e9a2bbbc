"""Lanes, one per stream and order key; breakers, one per stream; and the lease of the sweeper.

Only `lanes`, `dispatch`, `breaker` and `sweeper` write these rows, with SQL and the database's clock.
The rows have no database foreign keys to the tenant or the stream, because with foreign keys a purge would deadlock with deliveries.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Now


class Lane(models.Model):
    """The queue of one stream and one order key. The row exists while deliveries wait in the lane, and is the lock of these deliveries.

    `token` identifies the current claim. A worker whose lease has expired has an old token, so its outcome is discarded.
    """

    stream_id = models.CharField(max_length=26)
    key = models.CharField(max_length=400, help_text="The user or other entity whose events stay in order, as <kind>:<id>.")
    tenant_id = models.CharField(max_length=63)
    not_before = models.DateTimeField(db_default=Now(), help_text="When the first waiting delivery may run.")
    lease_until = models.DateTimeField(null=True, help_text="While an attempt runs: when another worker can take over the delivery.")
    token = models.UUIDField(null=True)
    delivery_id = models.BigIntegerField(null=True, help_text="The delivery whose attempt is running.")
    nudged_until = models.DateTimeField(
        null=True, help_text="Until this time, the service assumes that a message asks the workers to deliver the events of this lane."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream_id", "key"], name="provisioning_lane_stream_key_unique")]
        indexes = [
            # Claims and the sweep find the oldest due lane of a stream. The id is an expression, so that lookups by id never use this
            # index: for a table without statistics, the planner would rate this index equal to the primary key, and scan the whole
            # index.
            models.Index(F("stream_id"), F("not_before"), F("id") + 0, name="provisioning_lane_by_due"),
        ]

    def __str__(self) -> str:
        return f"{self.stream_id}:{self.key}"


class Breaker(models.Model):
    """Consecutive failures of a stream that were caused by the destination, and the time of the next probe."""

    stream_id = models.CharField(primary_key=True, max_length=26)
    tenant_id = models.CharField(max_length=63)
    failures = models.PositiveIntegerField(default=0)
    keys = models.JSONField(
        "failed entities",
        default=list,
        help_text="Users and other entities whose deliveries failed. Too many of them hold the stream.",
    )
    unauthorized = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Number of consecutive responses with the status 401. Not used while there are no failures."
    )
    forbidden_keys = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        help_text="Entities, such as users, with consecutive responses with the status 403. Not used while there are no failures.",
    )
    probe_at = models.DateTimeField(null=True, help_text="When the service tries one delivery although the stream is held.")

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.failures}"


class StreamTally(models.Model):
    """One count of a stream for the metrics: attempts with one result, or with a duration in one bucket. Workers add to the count."""

    stream_id = models.CharField(max_length=26)
    tenant_id = models.CharField(max_length=63)
    name = models.CharField(max_length=32)
    count = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "stream tallies"
        constraints = [models.UniqueConstraint(fields=["stream_id", "name"], name="provisioning_streamtally_unique")]

    def __str__(self) -> str:
        return f"{self.stream_id} {self.name}: {self.count}"


class Sweeper(models.Model):
    """The single row that names the process that sweeps. Any process may take over once the lease has expired."""

    name = models.CharField(primary_key=True, max_length=32)
    holder = models.UUIDField()
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
