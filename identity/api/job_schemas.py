"""OpenAPI schemas of jobs, and the functions that render jobs."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from foundation.api.list_schemas import reference
from foundation.api.operations import TEXT, TIME, Schema
from foundation.timestamps import wire_time
from identity.exports.export_files import signed_path
from identity.models import Job

JOB_ID = r"job_[A-Za-z0-9]{16}"
_COUNT: Schema = {"type": "integer", "minimum": 0}
_COUNTS = ("total", "inserted", "updated", "failed")
_BY_OUTCOME = (Job.Type.STREAM_SYNCHRONIZATION, Job.Type.STREAM_RECONCILIATION)

_JOB: Schema = {
    "type": "object",
    "description": "Members that do not apply to the type or state of the job are absent.",
    "required": ["id", "type", "status", "created_at"],
    "properties": {
        "id": {**TEXT, "pattern": f"^{JOB_ID}$"},
        "type": {**TEXT, "enum": [str(value) for value in Job.Type.values if value != Job.Type.BULK_ACTION]},
        "status": {**TEXT, "enum": [str(value) for value in Job.Status.values]},
        "status_details": {**TEXT, "description": "Why the job failed, what it waits for, or a note about how it ended."},
        "created_at": TIME,
        "connection_id": TEXT,
        "connection": {**TEXT, "description": "Name of the connection."},
        "external_id": TEXT,
        "format": {**TEXT, "enum": ["json", "csv"]},
        "limit": {"type": "integer", "minimum": 1},
        "fields": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT, "export_as": TEXT}}},
        "percentage_done": {"type": "integer", "minimum": 0, "maximum": 100},
        "time_left_seconds": {**_COUNT, "description": "Estimated from the rate so far. Absent until an estimate exists."},
        "summary": {
            "type": "object",
            "description": "Counts of rows for an import, or of users for a synchronization, by result.",
            "properties": dict.fromkeys(_COUNTS, _COUNT),
            "additionalProperties": _COUNT,
        },
        "location": {
            **TEXT,
            "format": "uri",
            "description": "For a completed export: a link to the file, by default valid for one minute.",
        },
        "events_cursor": {**TEXT, "description": "For an export: a cursor; `GET /events?from=<cursor>` continues the export."},
    },
}
_ROW_ERRORS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["user", "errors"],
        "properties": {
            "user": {"type": "object", "additionalProperties": True, "description": "The row of the file, without hashes and factors."},
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {"code": TEXT, "message": TEXT, "path": TEXT},
                },
            },
        },
    },
}
JOB = reference("Job")
ERRORS: Schema = {"oneOf": [_ROW_ERRORS, reference("FailedJob")]}
COMPONENTS: dict[str, Schema] = {
    "Job": _JOB,
    "FailedJob": {
        "type": "object",
        "description": "A job that failed as a whole.",
        "required": ["id", "type", "status", "created_at", "status_details"],
        "properties": {
            name: _JOB["properties"][name] for name in ("id", "type", "status", "created_at", "connection_id", "status_details")
        },
    },
}


def job_resource(job: Job, *, base: str) -> dict[str, Any]:
    """Return the document of a job. `base` is the base URL of the tenant, without a slash at its end."""
    document: dict[str, Any] = {**failed_job(job), "connection": job.connection.name if job.connection else None}
    document |= {name: job.parameters.get(name) for name in ("format", "limit", "fields")}
    document["external_id"] = job.parameters.get("external_id") or None
    document["events_cursor"] = job.events_cursor or None
    if job.type == Job.Type.USERS_IMPORT:
        document["summary"] = {name: job.summary.get(name, 0) for name in _COUNTS}
    if job.type in _BY_OUTCOME:
        document["summary"] = {"total": job.summary.get("total", 0), **job.summary.get("outcomes", {})}
    document |= {"percentage_done": job.percentage_done, "time_left_seconds": job.seconds_left(timezone.now())}
    if job.type == Job.Type.USERS_EXPORT and job.status == Job.Status.COMPLETED:
        document["location"] = base + signed_path(job)
    return {name: value for name, value in document.items() if value is not None}


def failed_job(job: Job) -> dict[str, Any]:
    """Return the members that the document of every job has. If a job failed as a whole, its document has no other members."""
    document = {"id": job.pk, "type": job.type, "status": job.status, "created_at": wire_time(job.created_at)}
    found = {"connection_id": job.connection_id, "status_details": job.status_details}
    return document | {name: value for name, value in found.items() if value}
