"""OpenAPI schemas of deliveries of event streams."""

from __future__ import annotations

from events.record.catalogue import EVENT_TYPES
from foundation.api.list_schemas import fields_of, reference, taken_list
from foundation.api.operations import TEXT, TIME, WHOLE, Schema

_TYPES: Schema = {"type": "array", "items": {**TEXT, "enum": list(EVENT_TYPES)}}

DELIVERY = reference("EventStreamDelivery")
DELIVERIES = taken_list("deliveries", DELIVERY)
STATISTICS = reference("EventStreamStatistics")
REDELIVERY = reference("EventStreamRedelivery")
NOTHING: Schema = {"type": "object", "additionalProperties": False}
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` can omit any of them.
    "EventStreamDelivery": {
        "type": "object",
        "properties": {
            "id": {**TEXT, "pattern": "^evt_[1-9A-HJ-NP-Za-km-z]{22}$", "description": "The id of the event."},
            "event_stream_id": TEXT,
            "event_type": TEXT,
            "status": {**TEXT, "enum": ["pending", "delivered", "skipped", "failed", "superseded"]},
            "attempts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["status", "timestamp"],
                    "properties": {
                        "status": {**TEXT, "enum": ["delivered", "skipped", "failed", "retrying"]},
                        "timestamp": TIME,
                        "error_message": TEXT,
                        "duration": {"type": "number", "description": "Milliseconds."},
                        "execution_id": {**TEXT, "format": "uuid", "description": "Only if the destination is an action."},
                    },
                },
            },
            "event": {**reference("EventEnvelope"), "description": "Only while the delivery waits or has failed."},
        },
    },
    "EventStreamStatistics": {
        "type": "object",
        "required": ["id", "window", "buckets", "metrics"],
        "properties": {
            "id": TEXT,
            "name": TEXT,
            "window": {
                "type": "object",
                "properties": {
                    "date_from": TIME,
                    "date_to": TIME,
                    "bucket_interval": {"type": "object", "properties": {"scale_factor": {**WHOLE, "description": "Seconds."}}},
                },
            },
            "buckets": {"type": "array", "items": TIME},
            "metrics": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": TEXT, "window_total": WHOLE, "type": TEXT, "data": {"type": "array", "items": WHOLE}},
                },
            },
        },
    },
    "EventStreamRedelivery": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"date_from": TEXT, "date_to": TEXT, "statuses": {"type": "array", "items": TEXT}, "event_types": _TYPES},
    },
}
DELIVERY_FIELDS = fields_of(COMPONENTS["EventStreamDelivery"])
