"""Writes events directly into the log of a tenant, for tests of code that reads the log."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection, transaction

from events.log.envelope import encode_envelope
from events.models import Event, EventStream, Head
from foundation.ids import new_event_id
from identity.models import Tenant
from tests.factories.models.events import EventStreamFactory

DESTINATION = "recorder"


def append_events(tenant: Tenant, keys: list[str], *, event_type: str = "user.updated", data: list[object] | None = None) -> list[Event]:
    """Append one event for each key at the next positions of the log, in one transaction. Return the events."""
    with transaction.atomic():
        head = Head.objects.select_for_update().get(pk=tenant.pk)
        events = Event.objects.bulk_create(
            [_event(tenant, head.stream_id, key, event_type, data[number] if data else number) for number, key in enumerate(keys)]
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO events_logentry (tenant_id, position, event_id, recorded_at) "
                "SELECT %s, %s + n, id, now() FROM unnest(%s::bigint[]) WITH ORDINALITY AS e(id, n)",
                [tenant.pk, head.position, [event.pk for event in events]],
            )
        head.position += len(events)
        head.save(update_fields=["position"])
    return events


def make_stream(tenant: Tenant, *, subscriptions: list[str] | None = None, position: int = 0) -> EventStream:
    """Create a stream of the tenant to the destination `DESTINATION`, which records each delivery. The stream begins after `position`."""
    return EventStreamFactory.create(
        tenant_id=tenant.pk,
        name=None,
        subscriptions=subscriptions or ["user.created", "user.updated", "user.deleted"],
        destination_type=DESTINATION,
        position=position,
    )


def _event(tenant: Tenant, stream_id: str, key: str, event_type: str, data: object) -> Event:
    event_id, time = new_event_id(), datetime.now(UTC)
    body = encode_envelope(
        event_type=event_type,
        source=f"urn:svc:{tenant.pk}.example.test",
        event_id=event_id,
        time=time,
        data={"object": {"key": key, "number": data}},
        tenant_id=tenant.pk,
        stream_id=stream_id,
        max_bytes=512 * 1024,
    )
    return Event(event_id=event_id, tenant_id=tenant.pk, type=event_type, root=key, time=time, body=body)
