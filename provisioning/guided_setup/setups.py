"""Unfinished setups of SCIM servers. The progress of a setup is derived from its rows and not stored separately.

An unfinished setup is an action of the SCIM template with no stream, or with one disabled stream. This stream has no deliveries, and no
running synchronization will enable it. An unfinished setup has no effect, because deliveries need an enabled stream.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, QuerySet

from events.models import EventStream
from identity.models import Job
from identity.services.failures import NotFound
from provisioning.engine import streams
from provisioning.engine.streams import synchronization_target
from provisioning.guided_setup.progress import StepState, drafts_of, next_step, states_of
from provisioning.models import Action, Delivery, Trial
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.synchronization import service as synchronizations

TESTS = (Trial.Kind.CONNECTION, Trial.Kind.WRITE_CHECK)
PREVIEWS = (Trial.Kind.DRY_RUN,)


@dataclass(frozen=True)
class GuidedSetup:
    """An unfinished setup with its action, stream, trials and dry run."""

    action: Action
    stream: EventStream | None

    def newest_trial(self, kinds: tuple[Trial.Kind, ...]) -> Trial | None:
        """Return the newest finished trial of these kinds, or None."""
        return self.action.trials.filter(kind__in=kinds).exclude(outcome=Trial.Outcome.RUNNING).order_by("-started_at", "-pk").first()

    @property
    def dry_run(self) -> Job | None:
        """The newest dry run of the first synchronization."""
        if self.stream is None:
            return None
        jobs = synchronizations.of_stream(tenant_id=self.action.tenant_id, stream_id=self.stream.pk)
        return jobs.filter(type=Job.Type.STREAM_SYNCHRONIZATION, parameters__plan__is_dry_run=True).first()

    @property
    def is_at_work(self) -> bool:
        """Whether a synchronization of this setup runs, or waits for an answer of an administrator."""
        if self.stream is None:
            return False
        jobs = synchronizations.of_stream(tenant_id=self.action.tenant_id, stream_id=self.stream.pk)
        return jobs.filter(status__in=(Job.Status.PENDING, Job.Status.PROCESSING)).exists()

    @cached_property
    def states(self) -> Mapping[str, StepState]:
        """The state of each step by its name. Computed once, at the first use."""
        (draft,) = drafts_of([self.action])
        return states_of(draft, self.newest_trial(TESTS), self.newest_trial(PREVIEWS), self.dry_run)


def next_steps(tenant_id: str, found: Sequence[GuidedSetup]) -> list[str]:
    """Return for each setup its first step that is not done. The number of queries does not depend on the number of setups."""
    trials: dict[tuple[Any, bool], Trial] = {}
    finished = Trial.objects.filter(action__in=[setup.action for setup in found], kind__in=(*TESTS, *PREVIEWS))
    finished = finished.exclude(outcome=Trial.Outcome.RUNNING)
    newest = finished.order_by("action_id", "kind", "-started_at", "-pk").distinct("action_id", "kind").defer("steps", "event")
    for trial in sorted(newest, key=lambda trial: (trial.started_at, trial.pk)):
        trials[trial.action_id, trial.kind in TESTS] = trial
    jobs = _dry_runs(tenant_id, [setup.stream.pk for setup in found if setup.stream is not None])
    drafts = drafts_of(setup.action for setup in found)
    return [
        next_step(
            states_of(
                draft,
                trials.get((setup.action.pk, True)),
                trials.get((setup.action.pk, False)),
                jobs.get(setup.stream.pk if setup.stream else ""),
            )
        )
        for setup, draft in zip(found, drafts, strict=True)
    ]


def _dry_runs(tenant_id: str, stream_ids: list[str]) -> dict[str, Job]:
    """Return the newest dry run of each stream."""
    targets = {synchronization_target(stream_id): stream_id for stream_id in stream_ids}
    jobs = Job.objects.of(tenant_id).filter(target__in=targets, type=Job.Type.STREAM_SYNCHRONIZATION, parameters__plan__is_dry_run=True)
    return {targets[job.target]: job for job in jobs.order_by("target", "-created_at").distinct("target")}


def unfinished(tenant_id: str) -> list[GuidedSetup]:
    """Return the unfinished setups of the tenant, newest first."""
    bound: dict[str, list[EventStream]] = {}
    for stream in _with_deliveries(EventStream.objects.of(tenant_id).filter(destination_type="action")):
        bound.setdefault(str(stream.destination.get("action_id")), []).append(stream)
    own = Action.objects.of(tenant_id).filter(template=SCIM_USER_PROVISIONING).order_by("-created_at", "-pk")
    found = [(action, bound.get(str(action.pk), [])) for action in own]
    enabling = streams.enabling_positions(tenant_id)
    return [GuidedSetup(action, bound_to[0] if bound_to else None) for action, bound_to in found if _is_unfinished(bound_to, enabling)]


def _with_deliveries(rows: QuerySet[EventStream]) -> QuerySet[EventStream]:
    """Annotate each stream with a flag that tells whether it has a delivery."""
    return rows.annotate(has_deliveries=Exists(Delivery.objects.filter(stream_id=OuterRef("pk"))))


def _is_unfinished(bound: list[EventStream], enabling: Container[str]) -> bool:
    """Tell whether an action with these streams is an unfinished setup; `enabling` are the streams that a synchronization will enable."""
    if not bound:
        return True
    if len(bound) > 1 or bound[0].status == EventStream.Status.ENABLED:
        return False
    return bound[0].pk not in enabling and not bound[0].has_deliveries  # type: ignore[attr-defined]  # annotated


def found(*, tenant_id: str, action_id: str) -> GuidedSetup:
    """Return one unfinished setup; raise `NotFound` if the setup does not exist or is finished."""
    try:
        action = Action.objects.of(tenant_id).filter(pk=action_id, template=SCIM_USER_PROVISIONING).first()
    except ValidationError as error:
        raise NotFound("The setup does not exist.") from error
    bound = EventStream.objects.of(tenant_id).filter(destination__action_id="" if action is None else str(action.pk))
    own = list(_with_deliveries(bound)[:2])
    if action is None or not _is_unfinished(own, streams.enabling_positions(tenant_id)):
        raise NotFound("The setup does not exist.")
    return GuidedSetup(action, own[0] if own else None)
