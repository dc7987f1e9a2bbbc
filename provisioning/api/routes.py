"""The paths of `provisioning` under `/api/v2/`."""

from __future__ import annotations

from foundation.api.operations import Route
from provisioning.api.action_tests import ActionTestEndpoint, BindingEndpoint, ExecutionEndpoint, TriggerEndpoint
from provisioning.api.actions import ActionEndpoint, VersionEndpoint
from provisioning.api.deliveries import DeliveryEndpoint, RedeliveryEndpoint, StreamStatisticsEndpoint, TestEventEndpoint
from provisioning.api.event_streams import EventStreamEndpoint
from provisioning.api.stream_holds import DeletionThresholdEndpoint, StreamHoldEndpoint
from provisioning.api.synchronizations import SynchronizationAnswerEndpoint, SynchronizationEndpoint, SynchronizationReportEndpoint

_ACTION = "actions/actions/<segment:id>"
_STREAM = "event-streams/<segment:id>"
_SYNCHRONIZATION = f"{_STREAM}/synchronizations/<segment:job_id>"

_ANSWERS = ("resume", "confirm", "decline", "cancel")

ROUTES = (
    Route("actions/actions", ActionEndpoint, {"get": "list", "post": "create"}),
    Route(_ACTION, ActionEndpoint, {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
    Route(f"{_ACTION}/deploy", ActionEndpoint, {"post": "deploy"}),
    Route(f"{_ACTION}/test", ActionTestEndpoint, {"post": "create"}),
    Route(f"{_ACTION}/versions", VersionEndpoint, {"get": "list"}),
    Route(f"{_ACTION}/versions/<segment:version_id>", VersionEndpoint, {"get": "retrieve"}),
    Route(f"{_ACTION}/versions/<segment:version_id>/deploy", VersionEndpoint, {"post": "deploy"}),
    Route("actions/executions/<segment:id>", ExecutionEndpoint, {"get": "retrieve"}),
    Route("actions/triggers", TriggerEndpoint, {"get": "list"}),
    Route("actions/triggers/<segment:trigger_id>/bindings", BindingEndpoint, {"get": "list", "patch": "partial_update"}),
    Route("event-streams", EventStreamEndpoint, {"get": "list", "post": "create"}),
    Route(_STREAM, EventStreamEndpoint, {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
    Route(f"{_STREAM}/resume", StreamHoldEndpoint, {"post": "resume"}),
    Route(f"{_STREAM}/allow-deletions", StreamHoldEndpoint, {"post": "allow_deletions"}),
    Route(f"{_STREAM}/deletion-threshold", DeletionThresholdEndpoint, {"get": "retrieve", "put": "update", "delete": "destroy"}),
    Route(f"{_STREAM}/test", TestEventEndpoint, {"post": "create"}),
    Route(f"{_STREAM}/stats", StreamStatisticsEndpoint, {"get": "retrieve"}),
    Route(f"{_STREAM}/deliveries", DeliveryEndpoint, {"get": "list"}),
    Route(f"{_STREAM}/deliveries/<segment:event_id>", DeliveryEndpoint, {"get": "retrieve"}),
    Route(f"{_STREAM}/synchronizations", SynchronizationEndpoint, {"get": "list", "post": "create"}),
    Route(_SYNCHRONIZATION, SynchronizationEndpoint, {"get": "retrieve"}),
    Route(f"{_SYNCHRONIZATION}/report", SynchronizationReportEndpoint, {"get": "list"}),
    *(Route(f"{_SYNCHRONIZATION}/{answer}", SynchronizationAnswerEndpoint, {"post": answer}) for answer in _ANSWERS),
    Route(f"{_STREAM}/redeliver", RedeliveryEndpoint, {"post": "create"}),
    Route(f"{_STREAM}/redeliver/<segment:event_id>", RedeliveryEndpoint, {"post": "create_by_id"}),
)
