"""Unfinished setups of SCIM servers. The progress of a setup is derived from its rows and not stored separately.

An unfinished setup is an action of the SCIM template with no stream, or with one stream that has never delivered an event. It has
no effect, because deliveries need an enabled stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ValidationError

from events.models import EventStream
from identity.models import Job
from identity.services.failures import NotFound
from provisioning.engine import streams
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
        """Whether its synchronization runs or waits for an answer."""
        if self.stream is None:
            return False
        jobs = synchronizations.of_stream(tenant_id=self.action.tenant_id, stream_id=self.stream.pk)
        return jobs.filter(status__in=(Job.Status.PENDING, Job.Status.PROCESSING)).exists()

    @property
    def done_steps(self) -> frozenset[str]:
        """The steps that are done. The server was entered when the setup was created."""
        job = self.dry_run
        found = {
            "server": True,
            "test": _passed(self.newest_trial(TESTS)),
            "preview": _passed(self.newest_trial(PREVIEWS)),
            "dry-run": job is not None and job.status == Job.Status.COMPLETED,
        }
        return frozenset(name for name, is_done in found.items() if is_done)

    @property
    def next_step(self) -> str:
        """The first step that is not done."""
        done = self.done_steps
        return next((name for name in ("test", "preview", "dry-run") if name not in done), "enable")


def _passed(trial: Trial | None) -> bool:
    return trial is not None and trial.outcome == Trial.Outcome.PASSED


def unfinished(tenant_id: str) -> list[GuidedSetup]:
    """Return the unfinished setups of the tenant, newest first."""
    bound: dict[str, list[EventStream]] = {}
    for stream in EventStream.objects.of(tenant_id).filter(destination_type="action"):
        bound.setdefault(str(stream.destination.get("action_id")), []).append(stream)
    own = Action.objects.of(tenant_id).filter(template=SCIM_USER_PROVISIONING).order_by("-created_at", "-pk")
    found = [(action, bound.get(str(action.pk), [])) for action in own]
    return [GuidedSetup(action, streams_of[0] if streams_of else None) for action, streams_of in found if _is_unfinished(streams_of)]


def _is_unfinished(bound: list[EventStream]) -> bool:
    if not bound:
        return True
    if len(bound) > 1 or bound[0].status == EventStream.Status.ENABLED:
        return False
    stream = bound[0]
    if stream.pk in streams.enabling_positions(stream.tenant_id, stream.pk):
        return False
    return not Delivery.objects.filter(stream_id=stream.pk)[:1].exists()


def found(*, tenant_id: str, action_id: str) -> GuidedSetup:
    """Return one unfinished setup; raise `NotFound` if it does not exist or is finished."""
    try:
        action = Action.objects.of(tenant_id).filter(pk=action_id, template=SCIM_USER_PROVISIONING).first()
    except ValidationError as error:
        raise NotFound("The setup does not exist.") from error
    own = [] if action is None else list(EventStream.objects.of(tenant_id).filter(destination__action_id=str(action.pk))[:2])
    if action is None or not _is_unfinished(own):
        raise NotFound("The setup does not exist.")
    return GuidedSetup(action, own[0] if own else None)
