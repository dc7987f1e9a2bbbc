"""OpenAPI schemas of synchronizations, and their documents."""

from __future__ import annotations

from typing import Any

from foundation.api.list_schemas import reference
from foundation.api.operations import SWITCH, TEXT, Schema
from identity.api.job_schemas import JOB, JOB_ID, job_resource
from identity.models import Job
from provisioning.api.offset_page import page_schema
from provisioning.synchronization import phases
from provisioning.synchronization.findings import Outcome
from provisioning.synchronization.plan import Plan

MODES = ("dry_run", "write", "compare")
# Members of the plan on the wire, and their names in `Plan`.
PARTS = {
    "match": "match",
    "rate_per_second": "rate",
    "enable_stream": "enables_stream",
    "delete_missing": "deletes_missing",
    "deletion_limit": "deletion_limit",
}
_PLAN: Schema = {"match": TEXT, "rate_per_second": {"type": "integer"}, "enable_stream": SWITCH, "delete_missing": SWITCH}

SYNCHRONIZATION = reference("Synchronization")
SYNCHRONIZATIONS = page_schema("synchronizations", SYNCHRONIZATION)
REPORT = page_schema("results", reference("SynchronizationResult"))
JOB_IN_PATH: dict[str, Schema] = {"job_id": {"pattern": f"^{JOB_ID}$"}}
COMPONENTS: dict[str, Schema] = {
    "Synchronization": {
        "allOf": [
            JOB,
            {
                "type": "object",
                "required": ["event_stream_id", "mode", "plan", "outcomes"],
                "properties": {
                    "event_stream_id": TEXT,
                    "mode": {**TEXT, "enum": list(MODES)},
                    "waits_for": {
                        **TEXT,
                        "enum": [phases.RESUME, phases.CONFIRMATION],
                        "description": "The answer that the synchronization waits for. `status_details` contains the reason.",
                    },
                    "plan": {"type": "object", "required": [*PARTS], "properties": {**_PLAN, "deletion_limit": TEXT}},
                    "outcomes": {
                        "type": "object",
                        "description": "Number of users and accounts per outcome.",
                        "properties": {str(outcome): {"type": "integer", "minimum": 1} for outcome in Outcome},
                        "additionalProperties": False,
                    },
                },
            },
        ]
    },
    "SynchronizationResult": {
        "type": "object",
        "description": "One user, or an account without a user. Members that do not apply are omitted.",
        "required": ["outcome"],
        "properties": {
            "outcome": {**TEXT, "enum": [str(outcome) for outcome in Outcome]},
            "user_id": {**TEXT, "description": "The user, or the correlation key of an account without a user."},
            "scim_id": TEXT,
            "reason": TEXT,
            "error_class": TEXT,
            "differences": {
                "type": "array",
                "items": {"type": "object", "required": ["path"], "properties": {"path": TEXT}, "additionalProperties": True},
            },
        },
    },
}


def synchronization_resource(job: Job, outcomes: dict[str, int], *, base: str) -> dict[str, Any]:
    """Return the document of a synchronization: the document of the job, with the plan and the expected answer."""
    plan = Plan.of_document(job.parameters["plan"])
    document = {
        **job_resource(job, base=base),
        "event_stream_id": job.parameters["stream_id"],
        "mode": "compare" if plan.only_reports else "dry_run" if plan.is_dry_run else "write",
        "plan": {name: getattr(plan, part) for name, part in PARTS.items()},
        "outcomes": outcomes,
    }
    waits_for = "" if job.is_finished else job.parameters.get("waits_for", "")
    return {**document, "waits_for": waits_for} if waits_for else document
