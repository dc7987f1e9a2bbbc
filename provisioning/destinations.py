"""What a stream is bound to: the one place where the delivery engine meets whoever takes an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import orjson

from events.envelope import with_stream
from events.models import EventStream
from provisioning.failures import Misconfigured
from provisioning.models import Action
from provisioning.outcomes import Claim


class Outcome(Protocol):
    """What a destination returns when it did not raise."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def detail(self) -> dict[str, Any]: ...
    @property
    def log_lines(self) -> list[dict[str, Any]]: ...


Destination = Callable[[EventStream, Claim, dict[str, Any], float], Outcome]


def run_destination(claim: Claim, deadline_seconds: float) -> Outcome:
    """Hand the claimed event to its stream's destination; raise what the destination raises."""
    stream = EventStream.objects.of(claim.tenant_id).get(pk=claim.stream_id)
    envelope = orjson.loads(with_stream(claim.body, claim.stream_id))
    return DESTINATIONS[stream.destination_type](stream, claim, envelope, deadline_seconds)


def run_bound_action(stream: EventStream, claim: Claim, envelope: dict[str, Any], deadline_seconds: float) -> Outcome:
    """Run the stream's action. Raises `Misconfigured` when it is gone or not deployed."""
    from provisioning.runner import run_action  # noqa: PLC0415  (the runner brings the HTTP client, which only workers need)

    action = Action.objects.of(claim.tenant_id).filter(pk=stream.destination["action_id"], is_deployed=True).first()
    if action is None:
        raise Misconfigured("The stream's action does not exist or is not deployed.")
    return run_action(action, envelope, attempt=claim.attempt, deadline_seconds=deadline_seconds, correlation_id=claim.event_id)


DESTINATIONS: dict[str, Destination] = {"action": run_bound_action}
