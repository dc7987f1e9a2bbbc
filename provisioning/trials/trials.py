"""Stores trials of actions with their steps and actor. At most one trial of an action runs at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from identity.services.failures import Conflict
from provisioning.actions.setups import Setup
from provisioning.models import Trial
from provisioning.runs.outcomes import shortened, storable
from provisioning.trials.steps import Steps

# Seconds for all requests of one trial: an acceptable time for a page, and less than the time for which the trial leases lanes.
BUDGET_SECONDS = 25.0
# A trial that has not ended after this time is marked as lost, because its process must have ended.
_LOST_AFTER = timedelta(seconds=90)


@dataclass
class TrialReport:
    """The report of a trial: id, steps, and a summary sentence."""

    id: str
    steps: Steps
    summary: str = ""
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Trial.Outcome:
        return Trial.Outcome.FAILED if self.steps.first_failure else Trial.Outcome.PASSED

    @property
    def document(self) -> dict[str, Any]:
        steps = self.steps.documents
        return {"execution_id": self.id, "outcome": self.outcome.value, "summary": self.summary, "steps": steps, **self.findings}


@contextmanager
def trial(setup: Setup, kind: Trial.Kind, steps: Steps, *, actor: str, user_id: str = "") -> Iterator[TrialReport]:
    """Store the start of a trial before the block, and its end after the block; raise `Conflict` while another trial of the action runs."""
    row = begin_trial(setup, kind, actor, user_id=user_id)
    report = TrialReport(str(row.pk), steps)
    try:
        yield report
    except BaseException:
        end_trial(row, Trial.Outcome.LOST, report)
        raise
    end_trial(row, report.outcome, report)


def begin_trial(setup: Setup, kind: Trial.Kind, actor: str, *, user_id: str = "", event: dict[str, Any] | None = None) -> Trial:
    """Store the start of a trial; raise `Conflict` while another trial of the action runs."""
    lost = Trial.objects.filter(action_id=setup.action_id, outcome=Trial.Outcome.RUNNING, started_at__lt=timezone.now() - _LOST_AFTER)
    lost.update(outcome=Trial.Outcome.LOST, ended_at=timezone.now(), event=None)
    try:
        with transaction.atomic():
            return Trial.objects.create(
                action_id=setup.action_id, kind=kind, actor=actor[:254], user_id=user_id[:400], version=setup.version, event=event
            )
    except IntegrityError as error:
        raise Conflict("Another test of this action is running. Wait until it has ended.") from error


def end_trial(row: Trial, outcome: Trial.Outcome, report: TrialReport) -> None:
    """Store the end of the trial, unless the trial has been marked as lost meanwhile."""
    Trial.objects.filter(pk=row.pk, outcome=Trial.Outcome.RUNNING).update(
        outcome=outcome, ended_at=timezone.now(), summary=shortened(report.summary), steps=storable(report.steps.documents)
    )
