"""Test events for one stream. They are marked as test events and are in no log. Actions receive them; the SCIM template skips them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from events.log.envelope import TEST_PURPOSE, encode_envelope, event_source
from events.models import Event, EventStream
from events.record.catalogue import EVENT_TYPES
from events.record.samples import sample_data
from foundation.database.transactions import after_commit
from foundation.ids import new_event_id
from foundation.timestamps import wire_time
from identity.hosts import canonical_host
from identity.services.failures import Conflict, Invalid
from provisioning.engine import lanes, nudges
from provisioning.engine.streams import locked_stream
from provisioning.models import Delivery

# Each test event has its own order key, so that it does not wait for other events, and other events do not wait for it.
KEY_PREFIX = "test:"


def send_test_event(*, tenant_id: str, stream_id: str, event_type: str, data: dict[str, Any] | None = None) -> Delivery:
    """Queue an event only for this stream, of `event_type`, with `data` or with the sample data of the type. Return its delivery.

    Raises `NotFound`, `Invalid` for an unknown type, `Conflict` for a disabled stream, and `EventTooLarge` for too much data.
    """
    check_event_type(event_type)
    with transaction.atomic():
        stream = locked_stream(tenant_id=tenant_id, stream_id=stream_id)
        if stream.status != EventStream.Status.ENABLED:
            raise Conflict("The stream is disabled. Enable it to send test events.")
        event = marked_event(event_type, data, tenant_id=tenant_id, stream_id=stream.pk)
        event.save(force_insert=True)
        delivery = Delivery(
            stream_id=stream.pk,
            tenant_id=tenant_id,
            key=event.root,
            position=stream.position,
            event=event.pk,
            event_id=event.event_id,
            event_type=event_type,
        )
        delivery.save(force_insert=True)
        lanes.open_lane(stream_id=stream.pk, key=event.root, tenant_id=tenant_id)
        after_commit(nudges.post, nudges.DELIVER, stream.pk, event.root)
    return delivery


def check_event_type(event_type: str) -> None:
    """Raise `Invalid` for an unknown type."""
    if event_type not in EVENT_TYPES:
        raise Invalid({"event_type": [f"Not an event type: {event_type[:64]}."]})


def marked_event(event_type: str, data: dict[str, Any] | None, *, tenant_id: str, stream_id: str) -> Event:
    """Return an unsaved event that is marked as a test, with `data` or the sample data of its type.

    Raises `EventTooLarge`.
    """
    now, event_id = datetime.now(UTC), new_event_id()
    body = encode_envelope(
        event_type=event_type,
        source=event_source(settings.EVENT_SOURCE_NAMESPACE, tenant_id, canonical_host(tenant_id)),
        event_id=event_id,
        time=now,
        data=sample_data(event_type, tenant_id=tenant_id, time=wire_time(now)) if data is None else data,
        tenant_id=tenant_id,
        stream_id=stream_id,
        max_bytes=settings.EVENT_MAX_BYTES,
        prefix=settings.EVENT_ATTRIBUTE_PREFIX,
        purpose=TEST_PURPOSE,
    )
    return Event(event_id=event_id, tenant_id=tenant_id, type=event_type, root=f"{KEY_PREFIX}{event_id}", time=now, body=body)
