"""Factories of events, their positions in the log, and event streams. They bypass the recorder and the numberer."""

from __future__ import annotations

from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, SubFactory

from events.models import Event, EventStream, LogEntry, Mark, Outbox
from tests.factories.models.row_factory import RowFactory, own_number, own_text, same, tenant_of


class EventFactory(RowFactory[Event]):
    """An event without a position. Its envelope contains only the tenant."""

    class Meta:
        model = Event

    event_id = own_text(26)
    type = "user.created"
    root = own_text()
    time = LazyFunction(timezone.now)
    body = LazyAttribute(lambda row: f'{{"x0tenant": "{row.tenant_id}"}}'.encode())


class OutboxFactory(RowFactory[Outbox]):
    class Meta:
        model = Outbox

    event = own_number()


class LogEntryFactory(RowFactory[LogEntry]):
    """An event at a random position. The head of the log is not changed."""

    class Meta:
        model = LogEntry

    tenant_id = tenant_of("event")
    event = SubFactory(EventFactory, tenant_id=same())
    position = own_number()
    recorded_at = SelfAttribute("event.time")


class MarkFactory(RowFactory[Mark]):
    """A mark of a table that the service does not know. So no sweep records an event for this mark."""

    class Meta:
        model = Mark

    table_name = own_text()
    row_key = own_text()
    document_key = own_text()
    document_table = own_text()


class EventStreamFactory(RowFactory[EventStream]):
    """A stream without subscribed types and without a destination. `create_stream` creates a stream that delivers."""

    class Meta:
        model = EventStream

    name = own_text()
