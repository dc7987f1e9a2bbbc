"""Synchronizations of event streams: `/event-streams/{id}/synchronizations`, an extension of this service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from events.models import EventStream
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation, Schema
from identity.api.requested import base_of
from identity.models import Job
from identity.services.failures import NotFound
from identity.services.jobs import cancel_job
from provisioning.api.event_streams import STREAM_ID, check_stream_id
from provisioning.api.offset_page import PAGE_PARAMETERS, answer_page
from provisioning.api.synchronization_bodies import SynchronizationToStart
from provisioning.api.synchronization_schemas import (
    JOB_IN_PATH,
    PARTS,
    REPORT,
    SYNCHRONIZATION,
    SYNCHRONIZATIONS,
    synchronization_resource,
)
from provisioning.synchronization import service
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.state import outcomes_of

_READ = ("read:event_streams",)
_UPDATE = ("update:event_streams",)


class _StreamEndpoint(Endpoint):
    path_schemas: ClassVar[dict[str, Schema]] = {**STREAM_ID, **JOB_IN_PATH}

    def _document(self, request: Request, job: Job) -> dict[str, Any]:
        return synchronization_resource(job, outcomes_of(job), base=base_of(request))

    def _actor(self, request: Request) -> str:
        return f"client {request.user.client_id}"  # type: ignore[union-attr]  # the client behind the token


class SynchronizationEndpoint(_StreamEndpoint):
    """Provisions existing users to the SCIM server of a stream."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_event_stream_synchronizations",
            "List the synchronizations and comparisons of an event stream, newest first",
            _READ,
            200,
            SYNCHRONIZATIONS,
            parameters=PAGE_PARAMETERS,
            refuses=(404,),
        ),
        "create": Operation(
            "synchronize_event_stream",
            "Synchronize or compare users with the SCIM server of an event stream; writes nothing by default",
            _UPDATE,
            202,
            SYNCHRONIZATION,
            SynchronizationToStart,
            refuses=(404, 409),
        ),
        "retrieve": Operation("get_event_stream_synchronization", "Read a synchronization", _READ, 200, SYNCHRONIZATION, refuses=(404,)),
    }

    def list(self, request: Request, id: str) -> Response:
        jobs = service.of_stream(tenant_id=self.tenant_id, stream_id=_stream_at(id))
        return Response(answer_page(jobs, request.query_params, "synchronizations", lambda job: self._document(request, job)))

    def create(self, request: Request, id: str) -> Response:
        stream_id = _stream_at(id)
        body = self.body_of(request, SynchronizationToStart)
        mode = body.get("mode", "dry_run")
        parts: dict[str, Any] = {PARTS[name]: value for name, value in body.items() if name in PARTS}
        plan = Plan(is_dry_run=mode == "dry_run", only_reports=mode == "compare", **parts)
        job = service.start(tenant_id=self.tenant_id, stream_id=stream_id, plan=plan, actor=self._actor(request))
        return Response(self._document(request, job), status=202)

    def retrieve(self, request: Request, id: str, job_id: str) -> Response:
        return Response(self._document(request, _job_at(self.tenant_id, id, job_id)))


class SynchronizationReportEndpoint(_StreamEndpoint):
    """The report of a synchronization, user by user."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_event_stream_synchronization_results",
            "Read the report of a synchronization: the first thousand users of each outcome, all missing users, "
            "and all accounts without a user",
            _READ,
            200,
            REPORT,
            parameters=PAGE_PARAMETERS,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str, job_id: str) -> Response:
        rows = service.report_rows(_job_at(self.tenant_id, id, job_id))
        return Response(answer_page(rows, request.query_params, "results", service.row_document))


def _answering(name: str, summary: str) -> Operation:
    return Operation(f"{name}_event_stream_synchronization", summary, _UPDATE, 202, SYNCHRONIZATION, refuses=(404, 409))


class SynchronizationAnswerEndpoint(_StreamEndpoint):
    """Answers to a synchronization that waits, and its cancellation."""

    operations: ClassVar[dict[str, Operation]] = {
        "resume": _answering("resume", "Continue a stopped synchronization where it stopped"),
        "confirm": _answering("confirm", "Approve the deletions of a waiting synchronization"),
        "decline": _answering("decline", "End a waiting synchronization without its deletions"),
        "cancel": _answering("cancel", "Cancel a synchronization after the chunk that runs now; changes already made remain"),
    }

    def resume(self, request: Request, id: str, job_id: str) -> Response:
        return self._answered(request, id, job_id, service.resume, actor=self._actor(request))

    def confirm(self, request: Request, id: str, job_id: str) -> Response:
        return self._answered(request, id, job_id, service.confirm_deletions, actor=self._actor(request))

    def decline(self, request: Request, id: str, job_id: str) -> Response:
        return self._answered(request, id, job_id, service.decline_deletions, actor=self._actor(request))

    def cancel(self, request: Request, id: str, job_id: str) -> Response:
        return self._answered(request, id, job_id, cancel_job, actor=self._actor(request))

    def _answered(self, request: Request, stream_id: str, job_id: str, answer: Callable[..., Job], **said: str) -> Response:
        job = _job_at(self.tenant_id, stream_id, job_id)
        return Response(self._document(request, answer(tenant_id=self.tenant_id, job_id=job.pk, **said)), status=202)


def _stream_at(stream_id: str) -> str:
    check_stream_id(stream_id)
    if not EventStream.objects.filter(pk=stream_id).exists():
        raise NotFound("The event stream does not exist.")
    return stream_id


def _job_at(tenant_id: str, stream_id: str, job_id: str) -> Job:
    job = service.of_stream(tenant_id=tenant_id, stream_id=_stream_at(stream_id)).filter(pk=job_id).first()
    if job is None:
        raise NotFound("The event stream has no such synchronization.")
    return job
