"""What the OpenAPI document says about event streams."""

from __future__ import annotations

from events.record.catalogue import EVENT_TYPES
from foundation.api.list_schemas import fields_of, reference, taken_list
from foundation.api.operations import Schema
from provisioning.api import synchronization_schemas

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}

EVENT_STREAM = reference("EventStream")
DELETION_THRESHOLD = reference("EventStreamDeletionThreshold")
EVENT_STREAMS = taken_list("eventStreams", EVENT_STREAM)
COMPONENTS: dict[str, Schema] = {
    # Nothing is required: `fields` leaves out what it does not name.
    "EventStream": {
        "type": "object",
        "properties": {
            "id": {**_TEXT, "pattern": "^est_[A-Za-z0-9]{22}$"},
            "status": {**_TEXT, "enum": ["enabled", "disabled"]},
            "name": _TEXT,
            "subscriptions": {
                "type": "array",
                "items": {"type": "object", "required": ["event_type"], "properties": {"event_type": {**_TEXT, "enum": list(EVENT_TYPES)}}},
            },
            "created_at": _TIME,
            "updated_at": _TIME,
            "destination": {
                "type": "object",
                "required": ["type", "configuration"],
                "properties": {"type": {**_TEXT, "enum": ["action", "webhook"]}, "configuration": {"type": "object"}},
            },
            "held": {
                "type": "object",
                "description": "Only while deliveries wait for a destination that fails or is misconfigured; nothing is lost meanwhile.",
                "required": ["since", "reason"],
                "properties": {"since": _TIME, "reason": _TEXT},
            },
            "warnings": {
                "type": "array",
                "items": _TEXT,
                "description": "Only where there are any, such as another stream that writes to the same server for the same connections.",
            },
        },
    },
    "EventStreamDeletionThreshold": {
        "type": "object",
        "required": ["threshold"],
        "properties": {
            "threshold": {
                "type": "integer",
                "nullable": True,
                "description": "So many deletions of users pass within a window; null: they are not counted.",
            },
            "window_seconds": {"type": "integer"},
            "counted": {"type": "integer", "description": "In the window that runs now."},
            "staged_since": {**_TIME, "description": "Only while deletions wait until they are allowed."},
        },
    },
    **synchronization_schemas.COMPONENTS,
}
EVENT_STREAM_FIELDS = fields_of(COMPONENTS["EventStream"])
