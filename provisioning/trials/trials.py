"""Trials: what a person runs with an action by hand. One at a time per action, each kept with its steps and who asked."""

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

# All requests of one trial together. Nobody waits longer for a page, and no trial outlives the lease of its lanes.
BUDGET_SECONDS = 25.0
# After so long a running one has lost its process.
_LOST_AFTER = timedelta(seconds=90)


@dataclass
class TrialReport:
    """What a trial has shown: its id, its steps, and one sentence about the whole."""

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
    """Note that a trial of the action has begun, and how it ended; raise `Conflict` while another one runs."""
    row = begin_trial(setup, kind, actor, user_id=user_id)
    report = TrialReport(str(row.pk), steps)
    try:
        yield report
    except BaseException:
        end_trial(row, Trial.Outcome.LOST, report)
        raise
    end_trial(row, report.outcome, report)


def begin_trial(setup: Setup, kind: Trial.Kind, actor: str, *, user_id: str = "", event: dict[str, Any] | None = None) -> Trial:
    """Note that a trial begins; raise `Conflict` while another one of the action runs."""
    lost = Trial.objects.filter(action_id=setup.action_id, outcome=Trial.Outcome.RUNNING, started_at__lt=timezone.now() - _LOST_AFTER)
    lost.update(outcome=Trial.Outcome.LOST, ended_at=timezone.now(), event=None)
    try:
        with transaction.atomic():
            return Trial.objects.create(
                action_id=setup.action_id, kind=kind, actor=actor[:254], user_id=user_id[:400], version=setup.version, event=event
            )
    except IntegrityError as error:
        raise Conflict("Another test of this action is running; wait until it has ended.") from error


def end_trial(row: Trial, outcome: Trial.Outcome, report: TrialReport) -> None:
    """Write how the trial ended, unless it has been given up meanwhile."""
    Trial.objects.filter(pk=row.pk, outcome=Trial.Outcome.RUNNING).update(
        outcome=outcome, ended_at=timezone.now(), summary=shortened(report.summary), steps=storable(report.steps.documents)
    )
