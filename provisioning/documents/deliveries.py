"""JSON documents of deliveries: event id, state, attempts, and the event itself if its delivery failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Prefetch, QuerySet

from events.log.envelope import with_stream
from events.models import Event, EventStream
from foundation.timestamps import wire_time
from provisioning.documents.executions import execution_id
from provisioning.models import Attempt, DeadLetter, Delivery

STATUSES = {
    Delivery.State.TODO: "pending",
    Delivery.State.DELIVERED: "delivered",
    Delivery.State.SKIPPED: "skipped",
    Delivery.State.DEAD: "failed",
    Delivery.State.SUPERSEDED: "superseded",
}
_OUTCOMES = {Attempt.Outcome.DELIVERED: "delivered", Attempt.Outcome.SKIPPED: "skipped"}
_RETRYING = "retrying"


def with_attempts(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Add the related rows that `delivery_documents` needs; three queries in total."""
    tries = Prefetch("tries", Attempt.objects.defer("exchanges", "log_lines").order_by("number"))
    return deliveries.select_related("dead_letter").prefetch_related(tries)


def delivery_documents(deliveries: Sequence[Delivery]) -> list[dict[str, Any]]:
    """Return the deliveries as JSON objects; all event bodies are read in one query."""
    wanted = [delivery.event for delivery in deliveries if delivery.state in (Delivery.State.DEAD, Delivery.State.TODO)]
    bodies = dict(Event.objects.filter(pk__in=wanted).values_list("pk", "body"))
    runs = _streams_with_actions(deliveries)
    return [_document(delivery, bodies.get(delivery.event), is_run=delivery.stream_id in runs) for delivery in deliveries]


def _streams_with_actions(deliveries: Sequence[Delivery]) -> set[str]:
    """Return the ids of the streams that have an action. The attempts of these streams have execution ids."""
    if not deliveries:
        return set()
    streams = EventStream.objects.of(deliveries[0].tenant_id).filter(destination_type="action")
    return set(streams.filter(pk__in={delivery.stream_id for delivery in deliveries}).values_list("pk", flat=True))


def _document(delivery: Delivery, stored: Any, *, is_run: bool) -> dict[str, Any]:
    letter = _letter_of(delivery)
    document = {
        "id": delivery.event_id,
        "event_stream_id": delivery.stream_id,
        "event_type": delivery.event_type,
        "status": STATUSES[Delivery.State(delivery.state)],
        "attempts": _attempts(delivery.tries.all(), letter, is_waiting=delivery.state == Delivery.State.TODO, is_run=is_run),
    }
    body = stored or (letter.body if letter is not None else None)
    # The event is included only while the destination does not have it.
    if body is not None and delivery.state in (Delivery.State.DEAD, Delivery.State.TODO):
        document["event"] = orjson.loads(with_stream(bytes(body), delivery.stream_id))
    return document


def _attempts(tries: Iterable[Attempt], letter: DeadLetter | None, *, is_waiting: bool, is_run: bool) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    asked_at = letter.redelivered_at if letter is not None else None
    for attempt in tries:
        if attempt.trigger != Attempt.Trigger.SCHEDULED:
            shown.append(_redelivery(attempt.started_at))
        shown.append(_attempt(attempt, is_run=is_run))
    if is_waiting and asked_at is not None and not any(entry["timestamp"] >= wire_time(asked_at) for entry in shown):
        shown.append(_redelivery(asked_at))
    return shown


def _attempt(attempt: Attempt, *, is_run: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "status": _OUTCOMES.get(Attempt.Outcome(attempt.outcome), "failed"),
        "timestamp": wire_time(attempt.started_at),
    }
    if attempt.error_message:
        shown["error_message"] = attempt.error_message
    if attempt.duration_ms is not None:
        shown["duration"] = attempt.duration_ms
    if is_run:
        shown["execution_id"] = str(execution_id(attempt.delivery_id, attempt.number))
    return shown


def _redelivery(moment: datetime) -> dict[str, Any]:
    return {"status": _RETRYING, "timestamp": wire_time(moment)}


def _letter_of(delivery: Delivery) -> DeadLetter | None:
    return getattr(delivery, "dead_letter", None)
