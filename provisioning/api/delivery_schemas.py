"""What the OpenAPI document says about deliveries of event streams."""

from __future__ import annotations

from events.record.catalogue import EVENT_TYPES
from foundation.api.list_schemas import fields_of, reference, taken_list
from foundation.api.operations import Schema

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_WHOLE: Schema = {"type": "integer"}
_TYPES: Schema = {"type": "array", "items": {**_TEXT, "enum": list(EVENT_TYPES)}}

DELIVERY = reference("EventStreamDelivery")
DELIVERIES = taken_list("deliveries", DELIVERY)
STATISTICS = reference("EventStreamStatistics")
REDELIVERY = reference("EventStreamRedelivery")
NOTHING: Schema = {"type": "object", "additionalProperties": False}
COMPONENTS: dict[str, Schema] = {
    # Nothing is required: `fields` leaves out what it does not name.
    "EventStreamDelivery": {
        "type": "object",
        "properties": {
            "id": {**_TEXT, "pattern": "^evt_[1-9A-HJ-NP-Za-km-z]{22}$", "description": "The id of the event."},
            "event_stream_id": _TEXT,
            "event_type": _TEXT,
            "status": {**_TEXT, "enum": ["pending", "delivered", "skipped", "failed", "superseded"]},
            "attempts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["status", "timestamp"],
                    "properties": {
                        "status": {**_TEXT, "enum": ["delivered", "skipped", "failed", "retrying"]},
                        "timestamp": _TIME,
                        "error_message": _TEXT,
                        "duration": {"type": "number", "description": "Milliseconds."},
                        "execution_id": {**_TEXT, "format": "uuid", "description": "Where the destination is an action."},
                    },
                },
            },
            "event": {**reference("EventEnvelope"), "description": "While it waits or has failed."},
        },
    },
    "EventStreamStatistics": {
        "type": "object",
        "required": ["id", "window", "buckets", "metrics"],
        "properties": {
            "id": _TEXT,
            "name": _TEXT,
            "window": {
                "type": "object",
                "properties": {
                    "date_from": _TIME,
                    "date_to": _TIME,
                    "bucket_interval": {"type": "object", "properties": {"scale_factor": {**_WHOLE, "description": "Seconds."}}},
                },
            },
            "buckets": {"type": "array", "items": _TIME},
            "metrics": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": _TEXT, "window_total": _WHOLE, "type": _TEXT, "data": {"type": "array", "items": _WHOLE}},
                },
            },
        },
    },
    "EventStreamRedelivery": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"date_from": _TEXT, "date_to": _TEXT, "statuses": {"type": "array", "items": _TEXT}, "event_types": _TYPES},
    },
}
DELIVERY_FIELDS = fields_of(COMPONENTS["EventStreamDelivery"])
