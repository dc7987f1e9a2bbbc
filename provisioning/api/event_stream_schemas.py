"""OpenAPI schemas of event streams."""

from __future__ import annotations

from events.record.catalogue import EVENT_TYPES
from foundation.api.list_schemas import fields_of, reference, taken_list
from foundation.api.operations import TEXT, TIME, Schema
from provisioning.api import synchronization_schemas

EVENT_STREAM = reference("EventStream")
DELETION_THRESHOLD = reference("EventStreamDeletionThreshold")
EVENT_STREAMS = taken_list("eventStreams", EVENT_STREAM)
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` can omit any of them.
    "EventStream": {
        "type": "object",
        "properties": {
            "id": {**TEXT, "pattern": "^est_[A-Za-z0-9]{22}$"},
            "status": {**TEXT, "enum": ["enabled", "disabled"]},
            "name": TEXT,
            "subscriptions": {
                "type": "array",
                "items": {"type": "object", "required": ["event_type"], "properties": {"event_type": {**TEXT, "enum": list(EVENT_TYPES)}}},
            },
            "created_at": TIME,
            "updated_at": TIME,
            "destination": {
                "type": "object",
                "required": ["type", "configuration"],
                "properties": {"type": {**TEXT, "enum": ["action", "webhook"]}, "configuration": {"type": "object"}},
            },
            "held": {
                "type": "object",
                "description": "Present only while the stream is held. `reason` says why deliveries pause. No event is lost.",
                "required": ["since", "reason"],
                "properties": {"since": TIME, "reason": TEXT},
            },
            "warnings": {
                "type": "array",
                "items": TEXT,
                "description": "Omitted if empty. Example of a warning: another stream writes to the same server for the same connections.",
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
                "description": "Number of user deletions allowed within a window; null: deletions are not counted.",
            },
            "window_seconds": {"type": "integer"},
            "counted": {"type": "integer", "description": "Deletions in the current window."},
            "staged_since": {**TIME, "description": "Time since which deletions wait for approval; omitted if none wait."},
        },
    },
    **synchronization_schemas.COMPONENTS,
}
EVENT_STREAM_FIELDS = fields_of(COMPONENTS["EventStream"])
