"""The steps of a guided setup that change data: starting the dry run, enabling the stream, discarding the setup."""

from __future__ import annotations

from typing import Any

from events.models import EventStream
from identity.models import Job
from identity.services.failures import Conflict
from provisioning.engine import streams
from provisioning.guided_setup.setups import GuidedSetup
from provisioning.services import actions
from provisioning.synchronization import service as synchronizations
from provisioning.synchronization.plan import Plan

USER_EVENTS = ("user.created", "user.updated", "user.deleted")


def start_dry_run(setup: GuidedSetup, *, plan: Plan, actor: str) -> Job:
    """Deploy the action, bind a disabled stream to it, and start a dry run of the first synchronization."""
    stream = _prepared(setup)
    return synchronizations.start(tenant_id=stream.tenant_id, stream_id=stream.pk, plan=plan, actor=actor)


def enable(setup: GuidedSetup, *, is_synchronized: bool, actor: str) -> EventStream:
    """Finish the setup: start the first synchronization, which enables the stream at its end, or enable the stream immediately."""
    if setup.is_at_work:
        raise Conflict("The dry run still runs. Wait until it has ended, or cancel its job.")
    dry_run, stream = setup.dry_run, _prepared(setup)
    if not is_synchronized:
        return streams.enable_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)
    asked = Plan.of_document(dry_run.parameters["plan"]) if dry_run is not None else Plan()
    plan = Plan(match=asked.match, rate=asked.rate, enables_stream=True)
    synchronizations.start(tenant_id=stream.tenant_id, stream_id=stream.pk, plan=plan, actor=actor)
    return stream


def discard(setup: GuidedSetup) -> None:
    """Delete the stream, the action and the secrets of the setup. Users that were already written to the server remain on the server."""
    if setup.is_at_work:
        raise Conflict("The dry run still runs. Wait until it has ended, or cancel its job.")
    if setup.stream is not None:
        streams.delete_stream(tenant_id=setup.action.tenant_id, stream_id=setup.stream.pk)
    actions.delete_action(tenant_id=setup.action.tenant_id, action_id=setup.action.pk)


def _prepared(setup: GuidedSetup) -> EventStream:
    tenant_id = setup.action.tenant_id
    actions.deploy_action(tenant_id=tenant_id, action_id=setup.action.pk)
    if setup.stream is not None:
        return setup.stream
    is_taken = EventStream.objects.of(tenant_id).filter(name=setup.action.name).exists()
    destination: dict[str, Any] = {"action_id": str(setup.action.pk)}
    return streams.create_stream(
        tenant_id=tenant_id,
        name=None if is_taken else setup.action.name,
        subscriptions=USER_EVENTS,
        destination_type="action",
        destination=destination,
        is_enabled=False,
    )
