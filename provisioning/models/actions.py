"""Actions, which streams run for each event, with their options, mapping table and secrets.

The action row is the draft. Deliveries run its deployed version, which is immutable.
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
    """A template or an installed entry point, configured by one tenant. Streams can be bound to the action once a version is deployed.

    The row is the draft; `is_deployed` tells whether a version of the action is deployed.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        BUILT = "built"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=255)
    template = models.CharField(max_length=64, blank=True, help_text="A built-in template, such as scim-user-provisioning.")
    entry_point = models.CharField(max_length=255, blank=True, help_text="Dotted path of an installed action class.")
    options = models.JSONField(
        default=dict, blank=True, help_text="update_mode, upsert, adopt_on_conflict, enterprise, requests_per_second."
    )
    mapping = models.JSONField(null=True, blank=True, help_text="Rows of the mapping table; empty means the default table.")
    capabilities = models.JSONField(default=dict, blank=True, editable=False, help_text="Capabilities of the server, found by checks.")
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
    """One secret of an action, sealed for its tenant, action and name. Its value is never shown.

    The row has no tenant column, because it is only read through its action.
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
    """An immutable copy of an action's configuration and sealed secrets, made when the action was deployed.

    The row has no tenant column, because it is only read through its action. Deliveries run the newest deployed version.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="Counts the versions of one action, from 1.")
    template = models.CharField(max_length=64, blank=True)
    entry_point = models.CharField(max_length=255, blank=True)
    options = models.JSONField(default=dict)
    mapping = models.JSONField(null=True)
    secrets = models.JSONField(default=list, editable=False, help_text="Name, sealed value and updated_at of each secret.")
    is_deployed = models.BooleanField("in use", default=False)
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
    """One run of an action that a person has started: connection test, write check, dry run, run for one user or for a test event.

    The row is written at the start, which prevents two concurrent trials of one action. A trial is never a delivery.
    """

    class Kind(models.TextChoices):
        CONNECTION = "connection", "Connection test"
        # The management interface shows the stored value; the glossary calls this trial a write check.
        WRITE_CHECK = "canary", "Connection test with a write check"
        DRY_RUN = "dry_run", "Dry run for one user"
        USER_RUN = "user_run", "Run for one user"
        EVENT = "event", "Run for a test event"

    class Outcome(models.TextChoices):
        RUNNING = "running", "Running"
        PASSED = "passed", "Passed"
        FAILED = "failed", "Failed"
        LOST = "lost", "Lost: the process stopped before the test had ended"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    action = models.ForeignKey(Action, on_delete=models.CASCADE, related_name="trials")
    kind = models.CharField(max_length=16, choices=Kind)
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.RUNNING)
    actor = models.CharField(max_length=254, help_text="Account or client that started the test.")
    user_id = models.CharField(max_length=400, blank=True)
    version = models.PositiveIntegerField(null=True, help_text="The version that ran; empty for the draft.")
    summary = models.TextField(blank=True)
    event = models.JSONField(null=True, editable=False, help_text="The test event; removed when a worker takes it.")
    steps = models.JSONField(default=list, help_text="Steps of the run; secrets are masked before storage.")
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
        """The trial as the JSON document of the management interface."""
        return {"execution_id": str(self.pk), "outcome": self.outcome, "summary": self.summary, "steps": self.steps}


class Pace(models.Model):
    """The token bucket of an action, stored as two times.

    `full_at` is the time at which the bucket is full again. `promised_until` is the latest time to which a delivery was put off.
    """

    action = models.OneToOneField(Action, on_delete=models.CASCADE, primary_key=True, related_name="pace")
    full_at = models.DateTimeField(help_text="Time at which the bucket is full again if no token is taken.")
    promised_until = models.DateTimeField(help_text="The latest time to which a delivery was put off.")

    def __str__(self) -> str:
        return f"{self.action_id}: {self.full_at}"
