"""Event streams: `/event-streams`, `/event-streams/{id}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from events.models import EventStream
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import TAKE_FORM
from foundation.api.operations import Operation, Schema
from foundation.api.paging import Listing, answer_list
from foundation.api.refusals import invalid_body, invalid_path, not_supported
from foundation.timestamps import wire_time
from identity.services.failures import NotFound
from provisioning.api.event_stream_bodies import EventStreamToChange, EventStreamToCreate
from provisioning.api.event_stream_schemas import EVENT_STREAM, EVENT_STREAM_FIELDS, EVENT_STREAMS
from provisioning.engine import streams
from provisioning.engine.destinations import DESTINATIONS
from provisioning.links.overlaps import overlap_warnings

_LISTING = Listing("eventStreams", EVENT_STREAM_FIELDS, only_take=True)
_ID_LENGTH = 26
STREAM_ID: dict[str, Schema] = {"id": {"minLength": _ID_LENGTH, "maxLength": _ID_LENGTH}}
_SWITCHES: dict[str, Callable[..., EventStream]] = {"enabled": streams.enable_stream, "disabled": streams.disable_stream}


class EventStreamEndpoint(Endpoint):
    """The event streams of a tenant, without its built-in stream for subscriptions."""

    path_schemas: ClassVar[dict[str, Schema]] = STREAM_ID
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_event_streams", "List event streams", ("read:event_streams",), 200, EVENT_STREAMS, parameters=TAKE_FORM),
        "create": Operation(
            "create_event_stream",
            "Create an event stream",
            ("create:event_streams",),
            201,
            EVENT_STREAM,
            EventStreamToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation("get_event_stream", "Read an event stream", ("read:event_streams",), 200, EVENT_STREAM, refuses=(404,)),
        "partial_update": Operation(
            "update_event_stream",
            "Change, enable or disable an event stream",
            ("update:event_streams",),
            200,
            EVENT_STREAM,
            EventStreamToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation("delete_event_stream", "Delete an event stream, if it exists", ("delete:event_streams",), 204),
    }

    def list(self, request: Request) -> Response:
        warnings = overlap_warnings(self.tenant_id)

        def shown(stream: EventStream) -> dict[str, Any]:
            return stream_resource(stream, warnings.get(stream.pk))

        return Response(answer_list(EventStream.objects.all(), request.query_params, _LISTING, shown))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, EventStreamToCreate)
        destination = body["destination"]
        _check_type(destination["type"])
        stream = streams.create_stream(
            tenant_id=self.tenant_id,
            name=body.get("name"),
            subscriptions=_event_types(body),
            destination_type=destination["type"],
            destination=destination["configuration"],
            is_enabled=body.get("status", EventStream.Status.ENABLED) == EventStream.Status.ENABLED,
        )
        return Response(one_stream_resource(stream), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(one_stream_resource(self._found(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, EventStreamToChange)
        stream = self._found(id)
        destination = body.get("destination")
        if destination is not None and destination["type"] != stream.destination_type:
            raise invalid_body("The type of a destination cannot be changed", "destination.type")
        if body.get("status") == EventStream.Status.ENABLED:
            # Check everything before the first write, so that a refused request changes nothing.
            streams.check_enabling(stream)
        if body.keys() - {"status"}:
            stream = streams.update_stream(
                tenant_id=self.tenant_id,
                stream_id=id,
                name=body.get("name"),
                subscriptions=_event_types(body) if "subscriptions" in body else None,
                destination=destination["configuration"] if destination else None,
            )
        if "status" in body:
            stream = _SWITCHES[body["status"]](tenant_id=self.tenant_id, stream_id=id)
        return Response(one_stream_resource(stream))

    def destroy(self, request: Request, id: str) -> Response:
        check_stream_id(id)
        streams.delete_stream(tenant_id=self.tenant_id, stream_id=id)
        return Response(status=204)

    def _found(self, stream_id: str) -> EventStream:
        check_stream_id(stream_id)
        stream = EventStream.objects.filter(pk=stream_id).first()
        if stream is None:
            raise NotFound("The event stream does not exist.")
        return stream


def one_stream_resource(stream: EventStream) -> dict[str, Any]:
    """Return the stream with its warnings."""
    return stream_resource(stream, overlap_warnings(stream.tenant_id).get(stream.pk))


def stream_resource(stream: EventStream, warnings: list[str] | None = None) -> dict[str, Any]:
    """Return the stream with members in the order of the contract. The member `held` is present only while the stream is held, and
    `warnings` is present only if there are warnings."""
    document: dict[str, Any] = {"id": stream.id, "status": str(stream.status)}
    if stream.name is not None:
        document["name"] = stream.name
    document["subscriptions"] = [{"event_type": event_type} for event_type in stream.subscriptions]
    document["created_at"] = wire_time(stream.created_at)
    document["updated_at"] = wire_time(stream.updated_at)
    document["destination"] = {"type": stream.destination_type, "configuration": stream.destination}
    if stream.held_since is not None:
        document["held"] = {"since": wire_time(stream.held_since), "reason": stream.held_reason}
    if warnings:
        document["warnings"] = warnings
    return document


def _check_type(destination_type: str) -> None:
    if destination_type not in DESTINATIONS:
        raise not_supported(f"Destinations of the type {destination_type} are not supported; expected one of {', '.join(DESTINATIONS)}.")


def check_stream_id(stream_id: str) -> None:
    """Refuse a malformed stream id in the path with 400."""
    if len(stream_id) != _ID_LENGTH:
        raise invalid_path("Object didn't pass validation for format event-stream-id", "id")


def _event_types(body: dict[str, Any]) -> list[str]:
    return [subscription["event_type"] for subscription in body.get("subscriptions", [])]
