"""Destinations of streams: the only place where the delivery engine calls an action or a webhook."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import orjson

from events.log.envelope import with_stream
from provisioning.actions.secrets import open_webhook
from provisioning.actions.setups import Setup, deployed_setup
from provisioning.engine.named_deletions import allow_named_deletion
from provisioning.links.rows import RunLinks
from provisioning.links.shared_servers import servers_of_other_streams
from provisioning.runs.failures import Misconfigured
from provisioning.runs.outcomes import Claim


class Outcome(Protocol):
    """The result of a run that raised no exception."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def detail(self) -> dict[str, Any]: ...
    @property
    def log_lines(self) -> list[dict[str, Any]]: ...
    @property
    def links(self) -> list[dict[str, Any]]: ...


# The cache of one turn. It contains, for example, an action with its secrets. A change of the action takes effect in the next turn.
Memory = dict[str, Any]
Destination = Callable[[Claim, dict[str, Any], float, Memory], Outcome]


def run_destination(claim: Claim, deadline_seconds: float, memory: Memory) -> Outcome:
    """Pass the claimed event to its stream's destination; exceptions of the destination propagate."""
    envelope = orjson.loads(with_stream(claim.body, claim.stream_id))
    return DESTINATIONS[claim.destination_type](claim, envelope, deadline_seconds, memory)


def run_bound_action(claim: Claim, envelope: dict[str, Any], deadline_seconds: float, memory: Memory) -> Outcome:
    """Run the deployed version of the stream's action. Raises `Misconfigured` if the action is deleted or not deployed."""
    from provisioning.engine.runner import run_action  # noqa: PLC0415  (the runner imports the HTTP client, which only workers need)

    action_id = claim.destination["action_id"]
    if action_id not in memory:
        memory[action_id] = deployed_setup(tenant_id=claim.tenant_id, action_id=action_id)
    setup = memory[action_id]
    if setup is None:
        raise Misconfigured("The stream's action does not exist or is not deployed.")
    return run_action(
        setup,
        envelope,
        attempt=claim.attempt,
        deadline_seconds=deadline_seconds,
        correlation_id=claim.event_id,
        links=_links_of(claim, setup, memory),
        allow_named_deletion=partial(allow_named_deletion, stream_id=claim.stream_id, tenant_id=claim.tenant_id),
    )


def _links_of(claim: Claim, setup: Setup, memory: Memory) -> RunLinks:
    others = f"servers beside {claim.stream_id}"
    if others not in memory:
        memory[others] = servers_of_other_streams(tenant_id=claim.tenant_id, stream_id=claim.stream_id)
    return RunLinks(setup, claim.position, shared_servers=memory[others])


def post_to_webhook(claim: Claim, _envelope: dict[str, Any], deadline_seconds: float, memory: Memory) -> Outcome:
    """Send the stored bytes to the stream's webhook."""
    from provisioning.webhooks.sending import post_event  # noqa: PLC0415  (as above)

    if claim.stream_id not in memory:
        memory[claim.stream_id] = open_webhook(tenant_id=claim.tenant_id, stream_id=claim.stream_id)
    body = with_stream(claim.body, claim.stream_id)
    return post_event(memory[claim.stream_id], event_id=claim.event_id, body=body, deadline_seconds=deadline_seconds)


DESTINATIONS: dict[str, Destination] = {"action": run_bound_action, "webhook": post_to_webhook}
