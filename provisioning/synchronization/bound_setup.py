"""Finds the configuration of a stream's action, and refuses streams that cannot be synchronized."""

from __future__ import annotations

from events.models import EventStream
from identity.services.failures import NotSupported
from provisioning.actions.setups import Setup, deployed_setup
from provisioning.models.actions import SCIM_USER_PROVISIONING


def setup_of_stream(stream: EventStream) -> Setup:
    """Return the deployed configuration of a stream; raise `NotSupported` unless the stream provisions users to a SCIM server."""
    action_id = stream.destination.get("action_id") if stream.destination_type == "action" else None
    setup = deployed_setup(tenant_id=stream.tenant_id, action_id=action_id) if action_id else None
    if setup is None or setup.template != SCIM_USER_PROVISIONING:
        raise NotSupported(f"Only a stream with a deployed action of the template {SCIM_USER_PROVISIONING} can be synchronized.")
    return setup
