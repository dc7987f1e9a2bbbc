"""The paths of this app below `/api/v2/`."""

from __future__ import annotations

from identity.api.operations import Route
from provisioning.api.event_streams import EventStreamEndpoint

ROUTES = (
    Route("event-streams", EventStreamEndpoint, {"get": "list", "post": "create"}),
    Route("event-streams/<segment:id>", EventStreamEndpoint, {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
)
