"""Request bodies of the endpoints for event streams."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from events.models import EventStream
from events.record.catalogue import EVENT_TYPES
from foundation.api.fields import Closed, JsonObject, ListOf, Text
from provisioning.api.destination_schemas import DESTINATION

DESTINATION_TYPES = ("action", "webhook", "eventbridge")


@extend_schema_field({"type": "string", "enum": list(EVENT_TYPES)})
class EventType(Text):
    """A text field with the name of an event type; the service layer refuses unknown names."""


@extend_schema_field({"type": "string", "enum": list(DESTINATION_TYPES)})
class DestinationType(Text):
    """A text field with the type of a destination; `Destination` refuses unknown types."""


@extend_schema_field({"type": "string", "enum": list(EventStream.Status.values)})
class Status(Text):
    """A text field with the status of a stream: `enabled` or `disabled`."""


class Subscription(Closed):
    event_type = EventType(max_length=64)


@extend_schema_field(DESTINATION)
class Destination(Closed):
    """The destination of a stream; the service layer validates `configuration` by type."""

    type = DestinationType(max_length=32)
    configuration = JsonObject()

    def validate_type(self, value: str) -> str:
        if value not in DESTINATION_TYPES:
            raise serializers.ValidationError(f"Expected one of {', '.join(DESTINATION_TYPES)}")
        return value


class EventStreamSettings(Closed):
    name = Text(required=False, max_length=128)
    subscriptions = ListOf(required=False, child=Subscription(), min_length=1)
    status = Status(required=False)

    def validate_status(self, value: str) -> str:
        if value not in EventStream.Status.values:
            raise serializers.ValidationError(f"Expected one of {', '.join(EventStream.Status.values)}")
        return value


class EventStreamToCreate(EventStreamSettings):
    subscriptions = ListOf(child=Subscription(), min_length=1)
    destination = Destination()


class EventStreamToChange(EventStreamSettings):
    destination = Destination(required=False)
