"""Tests whether a server that answered 403 also refuses reads. If so, the token lacks a permission, and the user is not the cause of the
403.

A separate message starts the test, outside deliveries. If this message is lost, the next 403 sends another message.
"""

from __future__ import annotations

from events.models import EventStream
from foundation.tenancy import tenant_bound
from provisioning.actions.pace import NoTurn
from provisioning.actions.setups import Setup, deployed_setup
from provisioning.engine import breaker
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.failures import ActionError, ConfigurationFailure
from provisioning.scim.transport import Request
from provisioning.trials.scim_sessions import mask_of, open_session

_BUDGET_SECONDS = 10.0
_REFUSALS = (401, 403)
_PATH = "/Users?startIndex=1&count=1"


def hold_when_reading_is_refused(*, stream_id: str, tenant_id: str) -> None:
    """Send one read request to the server of a stream after a 403; hold the stream if the server refuses this request.

    Works for the SCIM template only. An answer other than a refusal proves nothing and has no effect.
    """
    if not breaker.is_forbidden(stream_id=stream_id, tenant_id=tenant_id):
        return
    stream = EventStream.objects.of(tenant_id).filter(pk=stream_id, destination_type="action").first()
    setup = None if stream is None else deployed_setup(tenant_id=tenant_id, action_id=stream.destination.get("action_id"))
    if setup is None or setup.template != SCIM_USER_PROVISIONING:
        return
    if refusal := _refusal(setup):
        reason = f"The destination refuses writing and reading, so the token lacks a permission: {refusal}"
        breaker.hold_stream(stream_id=stream_id, tenant_id=tenant_id, reason=reason)


def _refusal(setup: Setup) -> str:
    try:
        with tenant_bound(setup.tenant_id):
            session = open_session(setup, mask_of(setup), seconds=_BUDGET_SECONDS)
            session.transport.send(Request("GET", _PATH, "/Users", _PATH))
    except ConfigurationFailure as failure:
        return str(failure) if failure.status in _REFUSALS else ""
    except (ActionError, NoTurn):
        return ""
    return ""
