"""Bodies about event streams."""

from __future__ import annotations

from rest_framework import serializers

from events.models import EventStream
from identity.api.fields import Closed, JsonObject, ListOf, Text

DESTINATION_TYPES = ("action", "webhook", "eventbridge")


class Subscription(Closed):
    event_type = Text(max_length=64)


class Destination(Closed):
    """Where a stream delivers to; what `configuration` holds depends on the type and is judged by its service."""

    type = Text(max_length=32)
    configuration = JsonObject()

    def validate_type(self, value: str) -> str:
        if value not in DESTINATION_TYPES:
            raise serializers.ValidationError(f"Expected one of {', '.join(DESTINATION_TYPES)}")
        return value


class EventStreamSettings(Closed):
    name = Text(required=False, max_length=128)
    subscriptions = ListOf(required=False, child=Subscription(), min_length=1)
    status = Text(required=False)

    def validate_status(self, value: str) -> str:
        if value not in EventStream.Status.values:
            raise serializers.ValidationError(f"Expected one of {', '.join(EventStream.Status.values)}")
        return value


class EventStreamToCreate(EventStreamSettings):
    destination = Destination()


class EventStreamToChange(EventStreamSettings):
    destination = Destination(required=False)
