"""Synchronisations of event streams: `/event-streams/{id}/synchronizations`, an extension of ours."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from events.models import EventStream
from identity.api.endpoint import Endpoint
from identity.api.job_schemas import JOB, job_resource
from identity.api.operations import Operation, Schema
from identity.api.requested import base_of
from identity.services.failures import NotFound
from provisioning.api.event_streams import STREAM_ID, check_stream_id
from provisioning.api.synchronization_bodies import SynchronizationToStart
from provisioning.backfill import service
from provisioning.backfill.plan import Plan

# The part of the plan that each member of the body is.
_PARTS = {
    "match": "match",
    "rate_per_second": "rate",
    "enable_stream": "enables_stream",
    "delete_missing": "deletes_missing",
    "deletion_limit": "deletion_limit",
}


class SynchronizationEndpoint(Endpoint):
    """Bringing the users that are there already to the SCIM server of a stream."""

    path_schemas: ClassVar[dict[str, Schema]] = STREAM_ID
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "synchronize_event_stream",
            "Synchronise or compare the users of an event stream with its SCIM server",
            ("update:event_streams",),
            202,
            JOB,
            SynchronizationToStart,
            refuses=(404, 409),
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        check_stream_id(id)
        if not EventStream.objects.filter(pk=id).exists():
            raise NotFound("The event stream does not exist.")
        body = self.body_of(request, SynchronizationToStart)
        mode = body.get("mode", "write")
        parts: dict[str, Any] = {_PARTS[name]: value for name, value in body.items() if name in _PARTS}
        plan = Plan(is_dry_run=mode == "dry_run", only_reports=mode == "compare", **parts)
        actor = f"client {request.user.client_id}"  # type: ignore[union-attr]  # the client behind the token
        job = service.start(tenant_id=self.tenant_id, stream_id=id, plan=plan, actor=actor)
        return Response(job_resource(job, base=base_of(request)), status=202)
