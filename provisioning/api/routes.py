"""The paths of this app below `/api/v2/`."""

from __future__ import annotations

from identity.api.operations import Route
from provisioning.api.deliveries import DeliveryEndpoint, RedeliveryEndpoint, StreamStatisticsEndpoint, TestEventEndpoint
from provisioning.api.event_streams import EventStreamEndpoint

_STREAM = "event-streams/<segment:id>"

ROUTES = (
    Route("event-streams", EventStreamEndpoint, {"get": "list", "post": "create"}),
    Route(_STREAM, EventStreamEndpoint, {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
    Route(f"{_STREAM}/test", TestEventEndpoint, {"post": "create"}),
    Route(f"{_STREAM}/stats", StreamStatisticsEndpoint, {"get": "retrieve"}),
    Route(f"{_STREAM}/deliveries", DeliveryEndpoint, {"get": "list"}),
    Route(f"{_STREAM}/deliveries/<segment:event_id>", DeliveryEndpoint, {"get": "retrieve"}),
    Route(f"{_STREAM}/redeliver", RedeliveryEndpoint, {"post": "create"}),
    Route(f"{_STREAM}/redeliver/<segment:event_id>", RedeliveryEndpoint, {"post": "create_by_id"}),
)
