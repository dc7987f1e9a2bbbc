"""Who may run next: one lane per stream and order key, what is known of a stream's failures, and who sweeps.

Lanes and breakers are written by `lanes`, `dispatch`, `breaker` and `sweeper` only, by SQL on the database's clock.
None has a database foreign key to the tenant or the stream: a purge would deadlock with deliveries.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Now


class Lane(models.Model):
    """The waiting line of one stream and one order key; it exists while something waits in it, and its row is their lock.

    `token` names the current claim: a worker that lost its lease holds another one, and its outcome is discarded.
    """

    stream_id = models.CharField(max_length=26)
    key = models.CharField(max_length=400, help_text="The document whose events stay in order, as <kind>:<id>.")
    tenant_id = models.CharField(max_length=63)
    not_before = models.DateTimeField(db_default=Now(), help_text="When the first waiting delivery may run.")
    lease_until = models.DateTimeField(null=True, help_text="Until when the claim holds.")
    token = models.UUIDField(null=True)
    delivery_id = models.BigIntegerField(null=True, help_text="The delivery that the claim runs.")
    nudged_until = models.DateTimeField(null=True, help_text="A message for this lane is under way until then.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream_id", "key"], name="provisioning_lane_stream_key_unique")]
        indexes = [
            # The oldest due lane of a stream: claims, and the sweep. The id is an expression, so that no lookup by id goes along this
            # index: where the table counts for empty, the planner takes it for as good as the primary key and reads all of it.
            models.Index(F("stream_id"), F("not_before"), F("id") + 0, name="provisioning_lane_by_due"),
        ]

    def __str__(self) -> str:
        return f"{self.stream_id}:{self.key}"


class Breaker(models.Model):
    """The failures of a stream in a row that speak against its destination, and when a hold is probed next."""

    stream_id = models.CharField(primary_key=True, max_length=26)
    tenant_id = models.CharField(max_length=63)
    failures = models.PositiveIntegerField(default=0)
    keys = models.JSONField(default=list, help_text="Different order keys that failed, as many as the breaker asks for.")
    unauthorized = models.PositiveIntegerField(default=0, db_default=0, help_text="Answers with 401 in a row, while there are failures.")
    forbidden_keys = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        help_text="Different order keys that were answered with 403 in a row, while there are failures.",
    )
    probe_at = models.DateTimeField(null=True, help_text="When one delivery is tried although the stream is held.")

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.failures}"


class Sweeper(models.Model):
    """The one row that says which process sweeps; whoever finds its lease expired takes over."""

    name = models.CharField(primary_key=True, max_length=32)
    holder = models.UUIDField()
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
