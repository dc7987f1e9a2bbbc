"""Jobs: imports and exports of users, mails that verify an email address, and the results of jobs."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.multipart import MultipartBody, close_files
from foundation.api.operations import Operation, Schema
from foundation.api.refusals import Refusal, invalid_body, invalid_path
from identity.api.job_bodies import MailToVerify, UsersToExport, UsersToImport
from identity.api.job_schemas import ERRORS, JOB, JOB_ID, failed_job, job_resource
from identity.api.requested import base_of
from identity.api.user_schemas import USER_FIELDS
from identity.exports.export_fields import InvalidFields, fields_of
from identity.exports.exports import CSV, JSON, start_export
from identity.imports.import_file import BadImportFile, read_rows
from identity.imports.imports import TooManyImports, start_import
from identity.job_rights import ANY_READER, readers_of
from identity.mail.verification import start_verification
from identity.models import Job, Organization
from identity.services.failures import NotFound

_INEXISTENT_CONNECTION = "inexistent_connection"


class UsersImportEndpoint(Endpoint):
    """Imports of users."""

    parser_classes = (MultipartBody,)
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation("create_users_import", "Import users from a file", ("create:users",), 202, JOB, UsersToImport),
    }

    def create(self, request: Request) -> Response:
        try:
            job = self._started(self.body_of(request, UsersToImport))
        except BadImportFile as error:
            raise invalid_body(str(error).removesuffix("."), "users") from error
        except NotFound as error:
            raise Refusal(400, str(error), _INEXISTENT_CONNECTION) from error
        except TooManyImports as error:
            raise Refusal(429, str(error)) from error
        finally:
            close_files(request.data.values() if isinstance(request.data, dict) else ())
        return Response(job_resource(job, base=base_of(request)), status=202)

    def _started(self, body: dict[str, Any]) -> Job:
        return start_import(
            tenant_id=self.tenant_id,
            connection_id=body["connection_id"],
            rows=read_rows(body["users"]),
            upsert=body.get("upsert", False),
            external_id=body.get("external_id", ""),
            send_completion_email=body.get("send_completion_email", settings.MAIL_REACHES_PEOPLE),
        )


class UsersExportEndpoint(Endpoint):
    """Exports of users."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation("create_users_export", "Export users into a file", ("read:users",), 200, JOB, UsersToExport),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, UsersToExport)
        form, fields = body.get("format") or JSON, body.get("fields") or []
        try:
            fields_of(fields, is_table=form == CSV, known=USER_FIELDS)
        except InvalidFields as error:
            raise invalid_body(error.reason, error.path) from error
        try:
            job = start_export(
                tenant_id=self.tenant_id, connection_id=body.get("connection_id"), form=form, limit=body.get("limit"), fields=fields
            )
        except NotFound as error:
            raise Refusal(400, str(error), _INEXISTENT_CONNECTION) from error
        return Response(job_resource(job, base=base_of(request)))


class VerificationEmailEndpoint(Endpoint):
    """Mails that ask users to verify their email address."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_verification_email", "Mail a user a link that verifies the email address", ("update:users",), 201, JOB, MailToVerify
        ),
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, MailToVerify)
        organization_id = body.get("organization_id", "")
        if organization_id and not Organization.objects.filter(pk=organization_id).exists():
            raise Refusal(400, "No organization found by that id or name.")
        named = body.get("identity")
        try:
            job = start_verification(
                tenant_id=self.tenant_id,
                user_id=body["user_id"],
                client_id=body.get("client_id", ""),
                organization_id=organization_id,
                identity=(named["provider"], named["user_id"]) if named else None,
                address=base_of(request),
            )
        except NotFound as error:
            raise Refusal(400, str(error), "inexistent_user") from error
        return Response(job_resource(job, base=base_of(request)), status=201)


class JobEndpoint(Endpoint):
    """One job."""

    path_schemas: ClassVar[dict[str, Schema]] = {"id": {"pattern": f"^{JOB_ID}$"}}
    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation("get_job", "Read a job", ANY_READER, 200, JOB, refuses=(404,)),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        job = job_at(id)
        self.require_scope(request, *readers_of(job))
        return Response(job_resource(job, base=base_of(request)))


class JobErrorEndpoint(Endpoint):
    """Errors of a job."""

    path_schemas: ClassVar[dict[str, Schema]] = {"id": {"pattern": f"^{JOB_ID}$"}}
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_job_errors",
            "Read the rows that a job could not import, or why it failed as a whole",
            ANY_READER,
            200,
            ERRORS,
            refuses=(404,),
            # 204: no error so far.
            repeated_status=204,
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        job = job_at(id)
        self.require_scope(request, *readers_of(job))
        if job.status == Job.Status.FAILED:
            return Response(failed_job(job))
        rows = list(job.errors.order_by("row_number", "pk").values("user", "errors"))
        return Response(rows) if rows else Response(status=204)


def job_at(job_id: str) -> Job:
    """Return the job; 404 if it does not exist, 400 for an id that no job can have."""
    if not re.fullmatch(JOB_ID, job_id):
        raise invalid_path("Object didn't pass validation for format job-id", "id")
    # Bulk acts of staff in the admin are not part of the management interface.
    job = Job.objects.exclude(type=Job.Type.BULK_ACTION).select_related("connection").filter(pk=job_id).first()
    if job is None:
        raise NotFound("The job does not exist.")
    return job
