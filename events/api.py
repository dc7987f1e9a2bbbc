"""The OpenAPI description of `/events`, and the operation that sends canaries.

The description of the stream is written by hand because the stream is not a DRF view (`events.stream.endpoint`).
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.management_scopes import READ_EVENTS
from events.log.envelope import TEST_PURPOSE, event_source
from events.record.catalogue import EVENT_TYPES
from events.stream.operating.canary import send_canary
from events.stream.reading.floor import FLOOR, FLOOR_TIME
from events.stream.request import MAX_FROM_LENGTH, MAX_FROM_TIMESTAMP_LENGTH, MOMENT_PATTERN
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.list_schemas import reference
from foundation.api.operations import Lifecycle, Operation, Route, Schema
from foundation.api.schema import RATE_HEADERS, error_responses, security_of
from foundation.timestamps import wire_time
from identity.hosts import resolve_host

STREAM_ERROR_CODES = ("invalid_cursor", "cursor_expired", "timeout", "payload_too_large", "processing_error", "connection_timeout")
_CURSOR: Schema = {"type": "string", "maxLength": MAX_FROM_LENGTH, "description": "Opaque cursor; delivery resumes after it."}
_FLOOR_HEADERS: Schema = {
    FLOOR: {
        "schema": _CURSOR,
        "description": "The earliest cursor that is served. A stream with this cursor in `from` delivers every retained event.",
    },
    FLOOR_TIME: {
        "schema": {"type": "string", "format": "date-time"},
        "description": "The earliest `from_timestamp`: every event from this time on is available. Absent until an event is pruned.",
    },
}
_GONE: Schema = {
    "description": "The cursor or the time points to data that is no longer available.",
    "headers": RATE_HEADERS,
    "content": {"application/json": {"schema": reference("CursorExpiredError")}},
}
_EVENT_TYPE: Schema = {"type": "string", "enum": list(EVENT_TYPES)}
_EARLIEST: Schema = {
    "earliest_offset": {**_CURSOR, "description": "The earliest cursor that is still served."},
    "earliest_time": {
        "type": "string",
        "nullable": True,
        "format": "date-time",
        "description": "When the event after this cursor was recorded; null if there is no such event.",
    },
}
CANARY: Schema = {
    "type": "object",
    "required": ["id", "requested_at"],
    "properties": {
        "id": {"type": "string", "pattern": "^evt_[a-zA-Z0-9]{22}$", "description": "The id that the event has on every stream."},
        "requested_at": {"type": "string", "format": "date-time", "description": "When the service sent the event; equal to its `time`."},
    },
}


@extend_schema_field(_EVENT_TYPE)
class EventType(Text):
    """The name of an event type. Refuses an unknown name with the service's own message instead of that of DRF."""


class CanaryToSend(Closed):
    type = EventType(required=False, max_length=64)

    def validate_type(self, value: str) -> str:
        if value not in EVENT_TYPES:
            raise serializers.ValidationError("Expected one of the event types")
        return value


class CanaryEndpoint(Endpoint):
    """Test events for the open streams of the calling client, to measure latency (decision 0044)."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "send_canary",
            "Send a test event to the open streams of this client; the event is not stored and moves no cursor",
            (READ_EVENTS,),
            202,
            CANARY,
            CanaryToSend,
        )
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, CanaryToSend)
        match = resolve_host(request.META.get("HTTP_HOST", ""))
        # The host has a tenant, because the token was verified on this host.
        host = match.canonical_host if match else ""
        event_id, requested_at = send_canary(
            tenant_id=self.tenant_id,
            client_id=request.user.client_id,  # type: ignore[union-attr]  # the client behind the token
            source=event_source(settings.EVENT_SOURCE_NAMESPACE, self.tenant_id, host),
            event_type=body.get("type"),
        )
        return Response({"id": event_id, "requested_at": wire_time(requested_at)}, status=202)


ROUTES = (Route("events/canary", CanaryEndpoint, {"post": "create"}),)


def subscribe_operation() -> Schema:
    """Return the operation `subscribe_events` (spec, "Subscribe to events")."""
    return {
        "operationId": "subscribe_events",
        "summary": "Subscribe to events",
        "description": "Server-sent events: each data line is one JSON message. Responses stay open; reconnect with the last offset.",
        "tags": ["events"],
        "parameters": [
            _parameter("from", _CURSOR, "Cursor after which the stream resumes. Without a cursor, it starts after the newest event."),
            _parameter(
                "from_timestamp",
                {
                    "type": "string",
                    "maxLength": MAX_FROM_TIMESTAMP_LENGTH,
                    "pattern": MOMENT_PATTERN,
                },
                "RFC 3339 time with Z, for a first request without a cursor. Cannot be combined with `from`.",
            ),
            {
                **_parameter("event_type", {"type": "array", "items": _EVENT_TYPE}, "Types to receive; all types by default."),
                "style": "form",
                "explode": True,
            },
            {**_parameter("Last-Event-ID", _CURSOR, "Takes precedence over `from` and `from_timestamp`."), "in": "header"},
        ],
        "security": security_of(READ_EVENTS),
        "responses": {
            "200": {
                "description": "The stream.",
                "headers": RATE_HEADERS | _FLOOR_HEADERS,
                "content": {"text/event-stream": {"schema": reference("EventStreamMessage")}},
            },
            **error_responses(400, 401, 403, 404, 429, 503),
            "410": _GONE,
        },
        "x-release-lifecycle": str(Lifecycle.GENERALLY_AVAILABLE),
    }


def stream_components() -> dict[str, Schema]:
    """Return the three messages of a stream, the envelope (spec, "SSE message", "Event envelope") and the body of the status 410."""
    prefix = settings.EVENT_ATTRIBUTE_PREFIX
    text: Schema = {"type": "string"}
    event = {"type": _EVENT_TYPE, "offset": _CURSOR, "event": reference("EventEnvelope")}
    detail = _closed({"code": {**text, "enum": list(STREAM_ERROR_CODES)}, "message": text, "offset": _CURSOR}, "code", "message")
    envelope = {
        "specversion": {**text, "enum": ["1.0"]},
        "type": _EVENT_TYPE,
        "source": {**text, "description": f"urn:{settings.EVENT_SOURCE_NAMESPACE}:<tenant>.<domain>"},
        "id": {**text, "pattern": "^evt_[a-zA-Z0-9]{22}$"},
        "time": {**text, "format": "date-time"},
        "data": {
            "type": "object",
            "description": "Only on a test event: the value of `data` in the request for the test event.",
            "properties": {"object": {"type": "object"}},
            "additionalProperties": True,
        },
        f"{prefix}tenant": {**text, "minLength": 3, "maxLength": 63},
        f"{prefix}stream": {**text, "pattern": "^est_[a-zA-Z0-9]{22}$"},
        f"{prefix}purpose": {**text, "enum": [TEST_PURPOSE]},
    }
    return {
        "EventStreamMessage": {"oneOf": [reference(name) for name in ("EventMessage", "OffsetOnlyMessage", "ErrorMessage")]},
        "EventMessage": _closed(event, *event),
        "OffsetOnlyMessage": _closed({"type": {**text, "enum": ["offset-only"]}, "offset": _CURSOR}, "type", "offset"),
        "ErrorMessage": _closed({"type": {**text, "enum": ["error"]}, "error": detail}, "type", "error"),
        "CursorExpiredError": {"allOf": [reference("Error"), {"type": "object", "required": list(_EARLIEST), "properties": _EARLIEST}]},
        "EventEnvelope": _closed(envelope, *(name for name in envelope if name != f"{prefix}purpose")),
    }


def _parameter(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _closed(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}
