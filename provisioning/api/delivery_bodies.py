"""Request bodies of the endpoints for deliveries of event streams."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from events.record.catalogue import EVENT_TYPES
from events.stream.request import MOMENT_PATTERN, InvalidQuery, parse_moment
from foundation.api.fields import Closed, JsonObject, ListOf, Text

FAILED = "failed"


@extend_schema_field({"type": "string", "enum": list(EVENT_TYPES)})
class EventTypeName(Text):
    """A text field that accepts only names of event types."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value not in EVENT_TYPES:
            raise serializers.ValidationError("Expected one of the event types")
        return value


@extend_schema_field({"type": "string", "pattern": MOMENT_PATTERN})
class Moment(Text):
    """A time in the format of `GET /events`: RFC 3339 with `Z`, without a fraction."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            moment: datetime = parse_moment(super().to_internal_value(data))
        except InvalidQuery as error:
            raise serializers.ValidationError("Object didn't pass validation for format date-time") from error
        return moment


@extend_schema_field({"type": "string", "enum": [FAILED]})
class Status(Text):
    """A text field that accepts only `failed`, the state that can be redelivered."""

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        if value != FAILED:
            raise serializers.ValidationError(f"Expected one of {FAILED}")
        return value


class RedeliveriesToStart(Closed):
    date_from = Moment(required=False)
    date_to = Moment(required=False)
    statuses = ListOf(required=False, child=Status())
    event_types = ListOf(required=False, child=EventTypeName())


class TestEventToSend(Closed):
    event_type = EventTypeName()
    data = JsonObject(required=False)  # type: ignore[assignment]  # a declared field, which the base takes off the class
