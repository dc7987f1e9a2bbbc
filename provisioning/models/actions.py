"""Actions: what a stream runs for each event, their options, their mapping table and their secrets.

The action itself is the draft. Deliveries run its deployed version, which nothing changes any more.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from identity.models.base import TenantOwned

SCIM_USER_PROVISIONING = "scim-user-provisioning"


class Action(TenantOwned):
    """A template or an installed entry point, set up by one tenant. A stream may be bound to it once it is deployed.

    What stands here is the draft; `is_deployed` says that one of its versions is deployed.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        BUILT = "built"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=255)
    template = models.CharField(max_length=64, blank=True, help_text="A template the service ships, such as scim-user-provisioning.")
    entry_point = models.CharField(max_length=255, blank=True, help_text="Dotted path of an installed action class.")
    options = models.JSONField(
        default=dict, blank=True, help_text="update_mode, upsert, adopt_on_conflict, enterprise, requests_per_second."
    )
    mapping = models.JSONField(null=True, blank=True, help_text="Rows of the mapping table; empty means the default table.")
    capabilities = models.JSONField(default=dict, blank=True, editable=False, help_text="What probes of the server have shown.")
    status = models.CharField(max_length=16, choices=Status, default=Status.BUILT)
    is_deployed = models.BooleanField(default=False)
    built_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="provisioning_action_name_unique"),
            models.CheckConstraint(
                condition=Q(template="", entry_point__gt="") | Q(template__gt="", entry_point=""),
                name="provisioning_action_template_or_entry_point",
            ),
        ]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class ActionSecret(models.Model):
    """One secret of an action, sealed for its tenant, action and name. Written and used, never shown again.

    It has no tenant of its own: it is only ever reached through its action.
    """

    NAME_VALIDATOR: ClassVar[RegexValidator] = RegexValidator(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$", "Letters, digits and underscores.")

    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=128, validators=[NAME_VALIDATOR])
    sealed = models.TextField(editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "name"], name="provisioning_actionsecret_name_unique")]
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class ActionVersion(models.Model):
    """What an action was when it was deployed: an immutable copy of its set-up and of its sealed secrets.

    It has no tenant of its own: it is only ever reached through its action. The newest deployed one is what deliveries run.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="Counts the versions of one action, from 1.")
    template = models.CharField(max_length=64, blank=True)
    entry_point = models.CharField(max_length=255, blank=True)
    options = models.JSONField(default=dict)
    mapping = models.JSONField(null=True)
    secrets = models.JSONField(default=list, editable=False, help_text="name, sealed and updated_at of each.")
    is_deployed = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action", "number"], name="provisioning_actionversion_number_unique"),
            models.UniqueConstraint(fields=["action"], condition=Q(is_deployed=True), name="provisioning_actionversion_one_deployed"),
        ]
        ordering = ("number",)

    def __str__(self) -> str:
        return f"version {self.number}"

    @property
    def sealed_secrets(self) -> dict[str, str]:
        return {secret["name"]: secret["sealed"] for secret in self.secrets}


class Trial(models.Model):
    """One run of an action that a person asked for: a connection test, a write check, a dry run, a run for one user or for a test event.

    It is written when it starts, so that no second one of the same action runs beside it, and it is never a delivery.
    """

    class Kind(models.TextChoices):
        CONNECTION = "connection", "Connection test"
        # Its name on the wire and in the table is older than the word.
        WRITE_CHECK = "canary", "Connection test with a write check"
        DRY_RUN = "dry_run", "Dry run for one user"
        USER_RUN = "user_run", "Run for one user"
        EVENT = "event", "Run for a test event"

    class Outcome(models.TextChoices):
        RUNNING = "running", "Running"
        PASSED = "passed", "Passed"
        FAILED = "failed", "Failed"
        LOST = "lost", "Lost with its process"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="trials")
    kind = models.CharField(max_length=16, choices=Kind)
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.RUNNING)
    actor = models.CharField(max_length=254, help_text="Who asked for it.")
    user_id = models.CharField(max_length=400, blank=True)
    version = models.PositiveIntegerField(null=True, help_text="The version that ran; empty for the draft.")
    summary = models.TextField(blank=True)
    event = models.JSONField(null=True, editable=False, help_text="The test event, until a worker takes it.")
    steps = models.JSONField(default=list, help_text="What was done, secrets masked before it is stored.")
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action"], condition=Q(outcome="running"), name="provisioning_trial_one_running"),
        ]
        indexes = [models.Index(fields=["started_at"], name="provisioning_trial_by_age")]
        ordering = ("-started_at",)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.started_at:%Y-%m-%d %H:%M}"

    @property
    def document(self) -> dict[str, Any]:
        """The trial as its report shows it."""
        return {"execution_id": str(self.pk), "outcome": self.outcome, "summary": self.summary, "steps": self.steps}


class Pace(models.Model):
    """The token bucket of an action as two times: when it is empty no longer, and until when turns are given away."""

    action = models.OneToOneField(Action, on_delete=models.CASCADE, primary_key=True, related_name="pace")
    full_at = models.DateTimeField(help_text="When every token is back, if none is taken until then.")
    promised_until = models.DateTimeField(help_text="Deliveries that found no token were told to come back before this.")

    def __str__(self) -> str:
        return f"{self.action_id}: {self.full_at}"
