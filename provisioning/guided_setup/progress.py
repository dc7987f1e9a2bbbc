"""The state of each step of a guided setup, derived from its tests, its dry run and the last change of its draft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Prefetch, prefetch_related_objects

from identity.models import Job
from provisioning.models import Action, ActionVersion, Trial
from provisioning.services.action_versions import is_draft_deployed

# Steps with a test, in their order. The first step, `server`, has no test: it is done as soon as the setup exists.
TESTED_STEPS = ("test", "preview", "dry-run")


class StepState(StrEnum):
    """The state of a step. `CHANGED`: the step was done, but the draft was changed afterwards."""

    TO_DO = "to do"
    RUNNING = "running"
    FAILED = "failed"
    CHANGED = "changed"
    DONE = "done"


_NOT_TESTED = {
    "test": "The connection is not tested: the address or the token can be wrong.",
    "preview": "The mapping is not tested: attributes can be missing or wrong on the server.",
    "dry-run": "No dry run has ended: the number of created, changed and skipped users is unknown.",
}
_NAMES = {"test": "connection test", "preview": "preview of the mapping", "dry-run": "dry run"}


@dataclass(frozen=True)
class Draft:
    """The deployed version of an action, whether its draft equals this version, and the last change of the draft. Only tests after this
    change are valid.
    """

    deployed: ActionVersion | None
    is_deployed: bool
    changed_at: datetime


def drafts_of(found: Iterable[Action]) -> list[Draft]:
    """Return the draft of each action, with two queries."""
    actions = list(found)
    deployed = Prefetch("versions", queryset=ActionVersion.objects.filter(is_deployed=True), to_attr="deployed_versions")
    prefetch_related_objects(actions, "secrets", deployed)
    return [_draft_of(action, next(iter(action.deployed_versions), None)) for action in actions]  # type: ignore[attr-defined]  # prefetched


def _draft_of(action: Action, deployed: ActionVersion | None) -> Draft:
    changed_at = max([action.updated_at, *(secret.updated_at for secret in action.secrets.all())])
    return Draft(deployed, is_draft_deployed(action, deployed), changed_at)


def states_of(draft: Draft, test: Trial | None, preview: Trial | None, dry_run: Job | None) -> Mapping[str, StepState]:
    """Return the state of each step by its name, from the newest connection test, preview and dry run."""
    states = (_of_trial(draft, test), _of_trial(draft, preview), _of_dry_run(draft, dry_run))
    return {"server": StepState.DONE, **dict(zip(TESTED_STEPS, states, strict=True))}


def next_step(states: Mapping[str, StepState]) -> str:
    """Return the first step that is not done; the last step if all tests are done."""
    return next((name for name in TESTED_STEPS if states[name] != StepState.DONE), "enable")


def warnings_of(states: Mapping[str, StepState]) -> list[str]:
    """Return a warning for each step whose test does not prove that the present settings work."""
    return [warning_of(name, states[name]) for name in TESTED_STEPS if states[name] != StepState.DONE]


def warning_of(name: str, state: StepState) -> str:
    """Return the warning about a tested step in a state other than done."""
    if state == StepState.FAILED:
        return f"The last {_NAMES[name]} failed."
    if state == StepState.CHANGED:
        return f"The settings were changed after the last {_NAMES[name]}."
    return _NOT_TESTED[name]


def _of_trial(draft: Draft, trial: Trial | None) -> StepState:
    if trial is None:
        return StepState.TO_DO
    if trial.outcome != Trial.Outcome.PASSED:
        return StepState.FAILED
    return StepState.CHANGED if trial.started_at < draft.changed_at else StepState.DONE


def _of_dry_run(draft: Draft, job: Job | None) -> StepState:
    if job is None:
        return StepState.TO_DO
    if not job.is_finished:
        return StepState.RUNNING
    if job.status != Job.Status.COMPLETED:
        return StepState.FAILED
    # A dry run uses the deployed version. Its result is outdated if the draft was changed later, or if a newer version was deployed.
    is_old = draft.deployed is not None and not (draft.is_deployed and draft.deployed.created_at <= job.created_at)
    return StepState.CHANGED if is_old else StepState.DONE
