"""The OpenAPI description of `/events`, written by hand: the operation is no DRF view (`events.stream.endpoint`)."""

from __future__ import annotations

from django.conf import settings

from authapi.scopes import READ_EVENTS
from events.catalogue import EVENT_TYPES
from events.envelope import TEST_PURPOSE
from events.stream.floor import FLOOR, FLOOR_TIME
from events.stream.request import MAX_FROM_LENGTH, MAX_FROM_TIMESTAMP_LENGTH
from identity.api.list_schemas import reference
from identity.api.operations import Lifecycle, Schema
from identity.api.schema import RATE_HEADERS, error_responses, security_of

_ERROR_CODES = ("invalid_cursor", "cursor_expired", "timeout", "payload_too_large", "processing_error", "connection_timeout")
_CURSOR: Schema = {"type": "string", "maxLength": MAX_FROM_LENGTH, "description": "Opaque cursor; delivery goes on after it."}
_FLOOR_HEADERS: Schema = {
    FLOOR: {
        "schema": _CURSOR,
        "description": "The earliest cursor that is served: with it as `from`, everything that is kept is delivered.",
    },
    FLOOR_TIME: {
        "schema": {"type": "string", "format": "date-time"},
        "description": "Everything from this time on is available, the earliest `from_timestamp`. Left out while nothing was dropped.",
    },
}
_EARLIEST: Schema = {
    "earliest_offset": {**_CURSOR, "description": "The earliest cursor that is still served."},
    "earliest_time": {
        "type": "string",
        "nullable": True,
        "format": "date-time",
        "description": "When the event after it was recorded; null when no event is left.",
    },
}
_GONE: Schema = {
    "description": "The cursor or the time points to data that is no longer available.",
    "headers": RATE_HEADERS,
    "content": {"application/json": {"schema": reference("CursorExpiredError")}},
}
_EVENT_TYPE: Schema = {"type": "string", "enum": list(EVENT_TYPES)}


def subscribe_operation() -> Schema:
    """Return the operation `subscribe_events` (document, "Subscribe to events")."""
    return {
        "operationId": "subscribe_events",
        "summary": "Subscribe to events",
        "description": "Server-sent events: each data line is one JSON message. Answers stay open; reconnect with the last offset.",
        "tags": ["events"],
        "parameters": [
            _parameter("from", _CURSOR, "Where to go on. Without it, from now on."),
            _parameter(
                "from_timestamp",
                {"type": "string", "maxLength": MAX_FROM_TIMESTAMP_LENGTH},
                "RFC 3339 with Z, for a first query without a cursor. Not together with `from`.",
            ),
            {
                **_parameter("event_type", {"type": "array", "items": _EVENT_TYPE}, "Types to receive; all when left out."),
                "style": "form",
                "explode": True,
            },
            {**_parameter("Last-Event-ID", _CURSOR, "Wins over `from` and `from_timestamp`."), "in": "header"},
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
    """Return the three messages of a stream and the envelope (document, "SSE message", "Event envelope")."""
    prefix = settings.EVENT_ATTRIBUTE_PREFIX
    text: Schema = {"type": "string"}
    event = {"type": _EVENT_TYPE, "offset": _CURSOR, "event": reference("EventEnvelope")}
    detail = _closed({"code": {**text, "enum": list(_ERROR_CODES)}, "message": text, "offset": _CURSOR}, "code", "message")
    envelope = {
        "specversion": {**text, "enum": ["1.0"]},
        "type": _EVENT_TYPE,
        "source": {**text, "description": f"urn:{settings.EVENT_SOURCE_NAMESPACE}:<tenant>.<domain>"},
        "id": {**text, "pattern": "^evt_[a-zA-Z0-9]{22}$"},
        "time": {**text, "format": "date-time"},
        "data": {"type": "object", "required": ["object"], "properties": {"object": {"type": "object"}}, "additionalProperties": True},
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
