"""Deliveries of event streams: `/event-streams/{id}/deliveries`, `.../redeliver`, `.../test`, `.../stats`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.http import QueryDict
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from events.models import EventStream
from events.record.catalogue import EVENT_TYPES
from events.stream.request import MOMENT_PATTERN, InvalidQuery, parse_moment
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import TAKE_FORM
from foundation.api.operations import TEXT, Operation, Parameter, Schema
from foundation.api.paging import Listing, Order, answer_list
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import invalid_path, invalid_query
from foundation.ids import EVENT_ID_PATTERN
from foundation.timestamps import wire_time
from identity.services.failures import Conflict, NotFound
from provisioning.api.delivery_bodies import FAILED, RedeliveriesToStart, TestEventToSend
from provisioning.api.delivery_schemas import DELIVERIES, DELIVERY, DELIVERY_FIELDS, NOTHING, REDELIVERY, STATISTICS
from provisioning.api.event_streams import STREAM_ID, check_stream_id
from provisioning.dead_letters import redelivery
from provisioning.dead_letters.redelivery_jobs import Selection, start_redelivery_job
from provisioning.documents.deliveries import delivery_documents, with_attempts
from provisioning.engine.stream_statistics import BUCKET_SECONDS, Statistics, statistics
from provisioning.models import Delivery
from provisioning.trials.trial_events import send_test_event

_LISTING = Listing("deliveries", DELIVERY_FIELDS, only_take=True)
_BY_AGE = Order()
_MOMENT = {"type": "string", "pattern": MOMENT_PATTERN}
_DATES = (
    Parameter("date_from", _MOMENT, "Start, included: an RFC 3339 time with Z and without fractions of a second."),
    Parameter("date_to", _MOMENT, "End, excluded: an RFC 3339 time with Z and without fractions of a second."),
)
_FILTERS = (
    Parameter("statuses", TEXT, "Comma-separated list; only `failed` is supported."),
    Parameter("event_types", TEXT, "Comma-separated list of event types."),
    *_DATES,
)
_READ = ("read:event_streams", "read:event_deliveries")
_REDELIVER = ("update:event_deliveries",)


class _OfStream(Endpoint):
    path_schemas: ClassVar[dict[str, Schema]] = {**STREAM_ID, "event_id": {"pattern": f"^{EVENT_ID_PATTERN.pattern}$"}}

    def stream_at(self, stream_id: str) -> EventStream:
        """Return the stream; raise `NotFound` (404) if the stream does not exist, and refuse a malformed id with 400."""
        check_stream_id(stream_id)
        stream = EventStream.objects.filter(pk=stream_id).first()
        if stream is None:
            raise NotFound("The event stream does not exist.")
        return stream


class DeliveryEndpoint(_OfStream):
    """Failed deliveries of a stream, and the history of one event."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_event_stream_deliveries",
            "List the failed deliveries of an event stream",
            _READ,
            200,
            DELIVERIES,
            parameters=(*TAKE_FORM, *_FILTERS),
            refuses=(404,),
        ),
        "retrieve": Operation(
            "get_event_stream_delivery",
            "Read the delivery of one event on an event stream",
            ("read:event_deliveries",),
            200,
            DELIVERY,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        stream, query = self.stream_at(id), request.query_params
        if any(status != FAILED for status in _listed(query, "statuses")):
            raise invalid_query(f"Expected one of {FAILED}", "statuses")
        rows = Delivery.objects.filter(stream_id=stream.pk, tenant_id=self.tenant_id, state=Delivery.State.DEAD)
        types = _listed(query, "event_types")
        if set(types) - set(EVENT_TYPES):
            raise invalid_query("Expected event types", "event_types")
        if types:
            rows = rows.filter(event_type__in=types)
        date_from, date_to = _dates(query)
        if date_from is not None:
            rows = rows.filter(created_at__gte=date_from)
        if date_to is not None:
            rows = rows.filter(created_at__lt=date_to)
        project = projection_of(query, _LISTING.fields)
        whole = query.copy()
        # The documents of a page are built together; then `fields` selects members of each document.
        whole.pop("fields", None)
        page: Any = answer_list(with_attempts(rows), whole, _LISTING, lambda row: row, order=_BY_AGE)
        return Response({**page, "deliveries": [project(document) for document in delivery_documents(page["deliveries"])]})

    def retrieve(self, request: Request, id: str, event_id: str) -> Response:
        stream = self.stream_at(id)
        check_event_id(event_id)
        rows = Delivery.objects.filter(event_id=event_id, stream_id=stream.pk, tenant_id=self.tenant_id)
        found = with_attempts(rows).first()
        if found is None:
            raise NotFound("This event stream has no delivery of the event.")
        return Response(delivery_documents([found])[0])


class RedeliveryEndpoint(_OfStream):
    """Redelivers failed events: a single event synchronously, several events as a job."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "redeliver_events",
            "Redeliver the failed events of an event stream, all or selected ones",
            _REDELIVER,
            202,
            REDELIVERY,
            RedeliveriesToStart,
            refuses=(404, 409),
        ),
        "create_by_id": Operation(
            "redeliver_event", "Redeliver one failed event of an event stream", _REDELIVER, 202, NOTHING, refuses=(404, 409)
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        stream = self.stream_at(id)
        body = self.body_of(request, RedeliveriesToStart)
        selection = Selection(body.get("date_from"), body.get("date_to"), tuple(body.get("event_types", ())))
        start_redelivery_job(tenant_id=self.tenant_id, stream_id=stream.pk, selection=selection, actor=_actor(request))
        sent: Any = request.data
        return Response({name: sent[name] for name in body}, status=202)

    def create_by_id(self, request: Request, id: str, event_id: str) -> Response:
        stream = self.stream_at(id)
        check_event_id(event_id)
        if not redelivery.redeliver_event(tenant_id=self.tenant_id, stream_id=stream.pk, event_id=event_id, actor=_actor(request)):
            raise Conflict("The event has not failed: it is being delivered, or is already settled.")
        return Response({}, status=202)


class TestEventEndpoint(_OfStream):
    """Sends a test event, which no change has caused, to a destination."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "test_event_stream",
            "Send a test event to the destination of an event stream",
            ("update:event_streams",),
            202,
            DELIVERY,
            TestEventToSend,
            refuses=(404, 409),
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        body = self.body_of(request, TestEventToSend)
        sent = send_test_event(tenant_id=self.tenant_id, stream_id=self.stream_at(id).pk, **body)
        return Response(delivery_documents([with_attempts(Delivery.objects.filter(pk=sent.pk)).get()])[0], status=202)


class StreamStatisticsEndpoint(_OfStream):
    """Numbers of deliveries and failures per day."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_event_stream_statistics",
            "Count delivered and failed events of an event stream per day",
            ("read:event_streams",),
            200,
            STATISTICS,
            parameters=_DATES,
            refuses=(404,),
        ),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        stream = self.stream_at(id)
        date_from, date_to = _dates(request.query_params)
        try:
            counted = statistics(stream_id=stream.pk, date_from=date_from, date_to=date_to, now=timezone.now())
        except ValueError as error:
            raise invalid_query(str(error), "date_from") from error
        return Response(_statistics(stream, counted))


def check_event_id(event_id: str) -> None:
    """Refuse a malformed event id in the path with 400."""
    if EVENT_ID_PATTERN.fullmatch(event_id) is None:
        raise invalid_path("Object didn't pass validation for format event-id", "event_id")


def _statistics(stream: EventStream, counted: Statistics) -> dict[str, Any]:
    named = {"name": stream.name} if stream.name is not None else {}
    window = {
        "date_from": wire_time(counted.date_from),
        "date_to": wire_time(counted.date_to),
        "bucket_interval": {"scale_factor": BUCKET_SECONDS},
    }
    metrics = [_metric("successful_deliveries", counted.delivered), _metric("failed_deliveries", counted.failed)]
    return {"id": stream.pk, **named, "window": window, "buckets": [wire_time(day) for day in counted.buckets], "metrics": metrics}


def _metric(name: str, data: list[int]) -> dict[str, Any]:
    full_name = f"{settings.EVENT_SOURCE_NAMESPACE}.event_streams.{name}"
    return {"name": full_name, "window_total": sum(data), "type": "sum", "data": data}


def _dates(query: QueryDict) -> tuple[datetime | None, datetime | None]:
    return _moment(query, "date_from"), _moment(query, "date_to")


def _moment(query: QueryDict, name: str) -> datetime | None:
    sent = text_of(query, name)
    try:
        return parse_moment(sent) if sent is not None else None
    except InvalidQuery as error:
        raise invalid_query("Object didn't pass validation for format date-time", name) from error


def _listed(query: QueryDict, name: str) -> list[str]:
    return [item.strip() for item in (text_of(query, name) or "").split(",") if item.strip()]


def _actor(request: Request) -> str:
    return f"client {request.user.client_id}"  # type: ignore[union-attr]  # the client behind the token
