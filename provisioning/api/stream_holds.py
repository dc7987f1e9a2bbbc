"""Resumes held streams: `/event-streams/{id}/resume`, `.../allow-deletions`, `.../deletion-threshold`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from events.models import EventStream
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed
from foundation.api.operations import Operation, Schema
from foundation.timestamps import wire_time
from identity.api.job_bodies import WholeNumber
from identity.services.failures import Conflict, NotFound
from provisioning.api.event_stream_schemas import DELETION_THRESHOLD, EVENT_STREAM
from provisioning.api.event_streams import STREAM_ID, check_stream_id, one_stream_resource
from provisioning.engine import deletion_guard, streams
from provisioning.models import DeletionGuard

_UPDATE = ("update:event_streams",)
_WINDOW_SECONDS = 3600


class DeletionThresholdToSet(Closed):
    """The number of user deletions that are allowed within a window.

    More deletions hold the stream until an administrator approves them.
    """

    threshold = WholeNumber(min_value=0, max_value=deletion_guard.HIGHEST_THRESHOLD)
    window_seconds = WholeNumber(required=False, min_value=1, max_value=deletion_guard.LONGEST_WINDOW_SECONDS)


class StreamHoldEndpoint(Endpoint):
    """Resumes a held stream, or approves its deletions."""

    path_schemas: ClassVar[dict[str, Schema]] = STREAM_ID
    operations: ClassVar[dict[str, Operation]] = {
        "resume": Operation(
            "resume_event_stream",
            "Resume a held event stream, which then delivers in order",
            _UPDATE,
            200,
            EVENT_STREAM,
            refuses=(404, 409),
        ),
        "allow_deletions": Operation(
            "allow_event_stream_deletions",
            "Approve the deletions that an event stream holds back",
            _UPDATE,
            200,
            EVENT_STREAM,
            refuses=(404, 409),
        ),
    }

    def resume(self, request: Request, id: str) -> Response:
        """Resume the stream. Has no effect if the stream is not held."""
        stream = _found(id)
        if deletion_guard.is_staged(stream):
            raise Conflict(streams.DELETIONS_WAIT)
        streams.resume_stream(tenant_id=self.tenant_id, stream_id=id)
        return Response(one_stream_resource(_found(id)))

    def allow_deletions(self, request: Request, id: str) -> Response:
        check_stream_id(id)
        deletion_guard.allow_deletions(tenant_id=self.tenant_id, stream_id=id)
        return Response(one_stream_resource(_found(id)))


class DeletionThresholdEndpoint(Endpoint):
    """The deletion threshold of a stream; not set by default."""

    path_schemas: ClassVar[dict[str, Schema]] = STREAM_ID
    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_event_stream_deletion_threshold",
            "Read the deletion threshold of an event stream",
            ("read:event_streams",),
            200,
            DELETION_THRESHOLD,
            refuses=(404,),
        ),
        "update": Operation(
            "set_event_stream_deletion_threshold",
            "Set the deletion threshold, above which deletions hold the event stream",
            _UPDATE,
            200,
            DELETION_THRESHOLD,
            DeletionThresholdToSet,
            refuses=(404,),
        ),
        "destroy": Operation(
            "remove_event_stream_deletion_threshold",
            "Remove the deletion threshold of an event stream",
            _UPDATE,
            204,
            refuses=(404, 409),
        ),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(_threshold(deletion_guard.guard_of(_found(id))))

    def update(self, request: Request, id: str) -> Response:
        check_stream_id(id)
        body = self.body_of(request, DeletionThresholdToSet)
        window = body.get("window_seconds", _WINDOW_SECONDS)
        guard = deletion_guard.set_guard(tenant_id=self.tenant_id, stream_id=id, threshold=body["threshold"], window_seconds=window)
        return Response(_threshold(guard))

    def destroy(self, request: Request, id: str) -> Response:
        """Remove the threshold. Refused while deletions wait, because these deletions must be approved first."""
        if deletion_guard.is_staged(_found(id)):
            raise Conflict(streams.DELETIONS_WAIT)
        deletion_guard.set_guard(tenant_id=self.tenant_id, stream_id=id, threshold=None)
        return Response(status=204)


def _found(stream_id: str) -> EventStream:
    check_stream_id(stream_id)
    stream = EventStream.objects.filter(pk=stream_id).first()
    if stream is None:
        raise NotFound("The event stream does not exist.")
    return stream


def _threshold(guard: DeletionGuard | None) -> dict[str, Any]:
    if guard is None:
        return {"threshold": None}
    document = {"threshold": guard.threshold, "window_seconds": guard.window_seconds, "counted": guard.counted}
    return document if guard.staged_since is None else {**document, "staged_since": wire_time(guard.staged_since)}
