"""Creates, changes, enables, disables and deletes event streams. A stream delivers events recorded while it is enabled."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import transaction

from events.log.numbering import number_tenant
from events.models import EventStream, Head
from events.record.catalogue import EVENT_TYPES
from foundation.database.transactions import after_commit
from identity.models import Job
from identity.services.failures import Conflict, Invalid, NotFound, NotSupported
from identity.services.jobs import unfinished
from identity.services.saving import validated_save
from provisioning.actions.secrets import seal_webhook
from provisioning.engine import breaker, dispatch, nudges, retention
from provisioning.engine.named_deletions import forget_named_deletions
from provisioning.models import Action, Breaker, DeletionGuard, Lane, WebhookSecrets
from provisioning.webhooks.configuration import ConfigurationRefused, parse_configuration

DELETIONS_WAIT = "Deletions of this stream wait for approval. Allow them before you enable or resume the stream."


def create_stream(
    *,
    tenant_id: str,
    subscriptions: Iterable[str],
    destination_type: str,
    destination: dict[str, Any],
    name: str | None = None,
    is_enabled: bool = True,
) -> EventStream:
    """Create a stream that starts at the head of the log.

    Raises `Invalid` for a bad subscription or destination, `NotSupported` for an unsupported type of destination, and `AlreadyExists` if
    another stream has the name.
    """
    stream = EventStream(tenant_id=tenant_id, name=name, destination_type=destination_type, status=_status(is_enabled=is_enabled))
    stream.subscriptions = checked_subscriptions(subscriptions)
    if destination_type not in ("action", "webhook"):
        raise NotSupported(f"A destination of the type {destination_type!r} is not supported; bind an action or a webhook.")
    # First give positions to the events that were recorded before the stream existed, so that these events are before its position.
    number_tenant(tenant_id)
    with transaction.atomic():
        stream.position = _head_position(tenant_id)
        _set_destination(stream, destination)
        validated_save(stream)
    return stream


def update_stream(
    *,
    tenant_id: str,
    stream_id: str,
    name: str | None = None,
    subscriptions: Iterable[str] | None = None,
    destination: dict[str, Any] | None = None,
) -> EventStream:
    """Replace the given fields; the type of the destination never changes.

    New subscriptions apply only to events that are not dispatched yet.
    """
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        changed = []
        if name is not None:
            stream.name = name
            changed.append("name")
        if subscriptions is not None:
            stream.subscriptions = checked_subscriptions(subscriptions)
            changed.append("subscriptions")
        if destination is not None:
            _set_destination(stream, destination)
            changed.append("destination")
        if changed:
            validated_save(stream, fields=changed)
    return stream


def enable_stream(*, tenant_id: str, stream_id: str) -> EventStream:
    """Enable the stream at the head of the log: the stream never delivers events that were recorded while it was disabled.

    Also resumes a held stream, even if the stream is already enabled. Raises the `Conflict` of `check_enabling`.
    """
    number_tenant(tenant_id)
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        check_enabling(stream)
        if stream.status != EventStream.Status.ENABLED:
            stream.status = EventStream.Status.ENABLED
            stream.position = _head_position(tenant_id)
            validated_save(stream, fields=["status", "position"])
        if stream.held_since is not None:
            _resume(stream)
    return stream


def check_enabling(stream: EventStream) -> None:
    """Raise `Conflict` if the stream must not be enabled now.

    A stream with staged deletions needs an approval first. If a running synchronization will enable the stream, only the job of this
    synchronization may enable it, at the position of the log that the job has stored. At a later position, the stream would miss changes
    of users whom the job had read before the changes.
    """
    if DeletionGuard.objects.filter(stream_id=stream.pk, tenant_id=stream.tenant_id, staged_since__isnull=False).exists():
        raise Conflict(DELETIONS_WAIT)
    if stream.status != EventStream.Status.ENABLED and enabling_positions(stream.tenant_id, stream.pk):
        raise Conflict(
            "A synchronization of this stream is running and will enable it. Cancel the synchronization to enable the stream now."
        )


def enable_stream_at(*, tenant_id: str, stream_id: str, position: int) -> None:
    """Enable the stream at an earlier position of the log, which a synchronization has stored and protected from pruning."""
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        stream.status = EventStream.Status.ENABLED
        stream.position = position
        validated_save(stream, fields=["status", "position"])
        after_commit(nudges.post, nudges.DISPATCH, tenant_id)


def synchronization_target(stream_id: str) -> str:
    """Return the target of a stream's synchronization job.

    At most one job of each target runs at a time. Redelivery jobs have another target, the id of the stream. So a redelivery job can run at
    the same time as a synchronization.
    """
    return f"synchronization:{stream_id}"


def enabling_positions(tenant_id: str, stream_id: str | None = None) -> dict[str, int]:
    """Return the positions at which running synchronizations will enable their streams, by stream id."""
    jobs = unfinished(tenant_id, Job.Type.STREAM_SYNCHRONIZATION).filter(parameters__plan__enables_stream=True)
    if stream_id is not None:
        jobs = jobs.filter(target=synchronization_target(stream_id))
    return {asked["stream_id"]: asked["position"] for asked in jobs.values_list("parameters", flat=True)}


def disable_stream(*, tenant_id: str, stream_id: str) -> EventStream:
    """Disable the stream after all events recorded until now are dispatched; the deliveries of these events wait until the stream is
    enabled again.
    """
    number_tenant(tenant_id)
    done = dispatch.Dispatched(stream_id)
    while True:
        with transaction.atomic():
            stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
            if stream.status == EventStream.Status.DISABLED:
                return stream
            if not dispatch.dispatch_batch(done, wait=True):
                stream.refresh_from_db(fields=["position"])
                stream.status = EventStream.Status.DISABLED
                validated_save(stream, fields=["status"])
                return stream


def delete_stream(*, tenant_id: str, stream_id: str) -> None:
    """Delete the stream with its deliveries and dead letters. Does nothing if the stream does not exist."""
    with transaction.atomic():
        try:
            locked_stream(tenant_id=tenant_id, stream_id=stream_id).delete()
        except NotFound:
            return
    # Without the stream's row, no delivery is dispatched or claimed, and a running attempt finds no lane in which it could store its
    # outcome.
    Lane.objects.filter(stream_id=stream_id, tenant_id=tenant_id).delete()
    Breaker.objects.filter(stream_id=stream_id, tenant_id=tenant_id).delete()
    DeletionGuard.objects.filter(stream_id=stream_id, tenant_id=tenant_id).delete()
    forget_named_deletions(stream_id)
    WebhookSecrets.objects.filter(stream_id=stream_id, tenant_id=tenant_id).delete()
    retention.drop_stream_rows(stream_id)


def resume_stream(*, tenant_id: str, stream_id: str) -> bool:
    """Resume a held stream; deliveries continue in order. Return False if the stream was not held. Raises `NotFound`."""
    with transaction.atomic():
        return _resume(locked_stream(tenant_id=tenant_id, stream_id=stream_id))


def locked_stream(*, tenant_id: str, stream_id: str) -> EventStream:
    """Return the stream with its row locked until the transaction ends; raise `NotFound`."""
    stream = EventStream.objects.of(tenant_id).select_for_update().filter(pk=stream_id).first()
    if stream is None:
        raise NotFound("The event stream does not exist.")
    return stream


def checked_subscriptions(types: Iterable[str]) -> list[str]:
    """Return the event types without duplicates, in the given order; raise `Invalid` if there is no type, or an unknown type."""
    wanted = list(dict.fromkeys(types))
    if not wanted:
        raise Invalid({"subscriptions": ["Name at least one event type."]})
    unknown = [name for name in wanted if name not in EVENT_TYPES]
    if unknown:
        raise Invalid({"subscriptions": [f"Not an event type: {', '.join(map(str, unknown))}."]})
    return wanted


def checked_action(tenant_id: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return the normalized configuration of an action destination.

    Raises `Invalid` unless the action belongs to the tenant and is deployed.
    """
    unknown = {name: ["Unknown field."] for name in configuration if name != "action_id"}
    if unknown:
        raise Invalid(unknown)
    try:
        action_id = uuid.UUID(str(configuration.get("action_id", "")))
    except ValueError as error:
        raise Invalid({"action_id": ["The id of an action is expected."]}) from error
    if not Action.objects.of(tenant_id).filter(pk=action_id, is_deployed=True).exists():
        raise Invalid({"action_id": ["The action does not exist or is not deployed."]})
    return {"action_id": str(action_id)}


def _set_destination(stream: EventStream, configuration: dict[str, Any]) -> None:
    """Check the configuration and set it on the stream; seal its secrets inside the caller's transaction."""
    if stream.destination_type == "action":
        stream.destination = checked_action(stream.tenant_id, configuration)
        return
    try:
        webhook = parse_configuration(configuration, allow_http=settings.OUTBOUND_ALLOW_HTTP)
    except ConfigurationRefused as error:
        raise Invalid({f"destination.configuration.{error.name}": [str(error)]}) from error
    seal_webhook(tenant_id=stream.tenant_id, stream_id=stream.pk, webhook=webhook)
    stream.destination = webhook.shown


def _resume(stream: EventStream) -> bool:
    """Resume a locked stream inside the caller's transaction; send nudges for its first lanes after the commit."""
    # The number of deletions of accounts that are identified only by their user name is limited per hour. An administrator has checked the
    # stream, so start the count again.
    forget_named_deletions(stream.pk)
    if not breaker.resume_stream(stream_id=stream.pk, tenant_id=stream.tenant_id):
        return False
    stream.refresh_from_db(fields=["held_since", "held_reason"])
    keys = Lane.objects.filter(stream_id=stream.pk).order_by("not_before", "id").values_list("key", flat=True)
    for key in keys[: nudges.FIRST_MESSAGES]:
        after_commit(nudges.post, nudges.DELIVER, stream.pk, key)
    return True


def _status(*, is_enabled: bool) -> str:
    return EventStream.Status.ENABLED if is_enabled else EventStream.Status.DISABLED


def _head_position(tenant_id: str) -> int:
    position = Head.objects.filter(pk=tenant_id).values_list("position", flat=True).first()
    if position is None:
        raise NotFound("The tenant has no log.")
    return position
