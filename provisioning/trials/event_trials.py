"""Runs an action for a test event, in a worker, because installed entry points are code that can hang.

The web process stores the trial with its event, sends its id to a worker, and waits for the result for a limited time.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from events.models import Head
from foundation.tenancy import tenant_bound
from identity.services.failures import Conflict, NotFound
from identity.stopped_tenants import of_running_tenants
from provisioning.actions.pace import NoTurn
from provisioning.actions.setups import Setup, draft_setup, version_setup
from provisioning.engine import nudges
from provisioning.engine.runner import run_action
from provisioning.links.rows import RunLinks, head_position
from provisioning.models import ActionVersion, Trial
from provisioning.runs.failures import ActionError, Misconfigured
from provisioning.trials.steps import Finding, Step, Steps
from provisioning.trials.trial_events import check_event_type, marked_event
from provisioning.trials.trials import TrialReport, begin_trial, end_trial

# Seconds to wait for a worker. An idle worker begins immediately, a busy worker after its turn.
BEGIN_SECONDS = 8.0
_LOOK_AGAIN_SECONDS = 0.1
# Seconds to wait after the budget of the run has ended, because the worker is interrupted at that time and then writes the result.
_WRITING_SECONDS = 3.0
_LONGEST_DETAIL = 100


def run_for_event(setup: Setup, *, event_type: str, data: dict[str, Any] | None, actor: str) -> Trial:
    """Let a worker run the action for a test event with `data`, or with the sample data of its type; return the ended trial.

    The event is marked as a test and is not in the log. Raises `Invalid` for an unknown type, `EventTooLarge`, and `Conflict` if
    another trial runs, if no worker is available, or if the run does not end in time.
    """
    trial = ask_for_event(setup, event_type=event_type, data=data, actor=actor)
    if not nudges.send(nudges.TRY, str(trial.pk)):
        _give_up(trial)
        raise Conflict("The workers are not reachable. Try again later.")
    return wait_for_end(trial)


def ask_for_event(setup: Setup, *, event_type: str, data: dict[str, Any] | None, actor: str) -> Trial:
    """Store the trial with its event; raise the exceptions of `run_for_event`."""
    check_event_type(event_type)
    head = Head.objects.filter(pk=setup.tenant_id).first()
    if head is None:
        raise NotFound("The tenant has no log.")
    event = marked_event(event_type, data, tenant_id=setup.tenant_id, stream_id=head.stream_id)
    return begin_trial(setup, Trial.Kind.EVENT, actor, event=orjson.loads(event.body))


def wait_for_end(trial: Trial, *, begin_seconds: float = BEGIN_SECONDS) -> Trial:
    """Wait for the end of the trial and return the trial; raise `Conflict` if no worker begins the trial, or if the trial does not end in
    time."""
    begin_by = time.monotonic() + begin_seconds
    end_by = begin_by + settings.DELIVERY_BUDGET_SECONDS + _WRITING_SECONDS
    while time.monotonic() < end_by:
        trial.refresh_from_db()
        if trial.outcome != Trial.Outcome.RUNNING:
            return trial
        if trial.event is not None and time.monotonic() > begin_by and _give_up(trial):
            raise Conflict("No worker has started the run. Check that workers are running, or try again later.")
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise Conflict(
        f"The run has not ended in time. Its result appears later under “Tests of actions”, and in GET /actions/executions/{trial.pk}."
    )


def work_on_event(trial_id: UUID | str) -> None:
    """Run the trial within the time budget of a delivery and store its report. Does nothing if another worker has taken the trial."""
    taken = _take(trial_id)
    if taken is None:
        return
    trial, event = taken
    report = TrialReport(str(trial.pk), Steps(None))
    report.steps.run([Step("run", "Run the entry point", partial(_run, trial, event))])
    report.summary = report.steps.taken[0].finding.text
    end_trial(trial, report.outcome, report)


def _take(trial_id: UUID | str) -> tuple[Trial, dict[str, Any]] | None:
    """Remove the event from the row of the trial, so that no other worker runs the trial and the event is not stored any longer."""
    with transaction.atomic():
        rows = of_running_tenants(Trial.objects.all(), path="action__tenant_id").select_for_update(of=("self",)).select_related("action")
        trial = rows.filter(pk=trial_id, outcome=Trial.Outcome.RUNNING, event__isnull=False).first()
        if trial is None or trial.event is None:
            return None
        event, trial.event = trial.event, None
        trial.save(update_fields=["event"])
    return trial, event


def _give_up(trial: Trial) -> bool:
    """End a trial that no worker has taken; return False if a worker has taken it."""
    waiting = Trial.objects.filter(pk=trial.pk, outcome=Trial.Outcome.RUNNING, event__isnull=False)
    return bool(waiting.update(outcome=Trial.Outcome.LOST, ended_at=timezone.now(), event=None, summary="No worker has started the run."))


def _run(trial: Trial, event: dict[str, Any]) -> Finding:
    """Return outcome, log lines and exchanges of the entry point, masked by the runner of actions."""
    try:
        with tenant_bound(trial.action.tenant_id):
            setup = _setup_of(trial)
            links = RunLinks(setup, head_position(setup.tenant_id))
            budget = settings.DELIVERY_BUDGET_SECONDS
            outcome = run_action(setup, event, attempt=1, deadline_seconds=budget, correlation_id=f"trial-{trial.pk}", links=links)
    except ActionError as failure:
        said = {"kind": failure.kind, "log": failure.log_lines, "exchanges": failure.exchanges[:_LONGEST_DETAIL]}
        return Finding(str(failure), "failed", details=said)
    except NoTurn as reason:
        return Finding(f"The action has used up its limit of requests per second: {reason}.", "failed")
    status = "Skipped" if outcome.status == "skipped" else "Delivered"
    details = {"result": outcome.detail, "log": outcome.log_lines, "exchanges": outcome.exchanges[:_LONGEST_DETAIL]}
    return Finding(f"{status}: {outcome.reason}" if outcome.reason else status, details=details)


def _setup_of(trial: Trial) -> Setup:
    """Return the configuration to run: the present draft, or the version of the trial."""
    if trial.version is None:
        return draft_setup(trial.action)
    version = ActionVersion.objects.select_related("action").filter(action=trial.action, number=trial.version).first()
    if version is None:
        raise Misconfigured("the version no longer exists")
    return version_setup(version)
