"""What the OpenAPI document says about actions, their versions, tests and executions."""

from __future__ import annotations

from typing import Any

from foundation.api.list_schemas import PROJECTION, fields_of, reference
from foundation.api.operations import Parameter, Schema
from provisioning.actions.registry import TEMPLATES, TRIGGER, TRIGGER_VERSION
from provisioning.api.action_bodies import OPTIONS_TEXT
from provisioning.api.offset_page import PAGE_PARAMETERS, page_schema
from provisioning.documents.actions import RUNTIME
from provisioning.models import Trial
from provisioning.trials.steps import STATES

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_BOOLEAN: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_OBJECT: Schema = {"type": "object"}
_ID: Schema = {"type": "string", "format": "uuid"}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "required": [name for name in properties if name not in optional], "properties": properties}


def _optional(properties: dict[str, Any]) -> Schema:
    return {"type": "object", "properties": properties}


ACTION = reference("Action")
ACTIONS = page_schema("actions", ACTION)
VERSION = reference("ActionVersion")
VERSIONS = page_schema("versions", VERSION)
EXECUTION = reference("ActionExecution")
TESTED = reference("ActionTestResult")
BINDINGS = page_schema("bindings", _OBJECT)
FORCE = Parameter("force", {**_BOOLEAN, "default": False}, "Delete it although a stream is bound to it; that stream is then held.")
VERSION_PARAMETERS = (*PAGE_PARAMETERS, *PROJECTION)
LIST_PARAMETERS = (
    *VERSION_PARAMETERS,
    Parameter("actionName", _TEXT, "The exact name."),
    Parameter("triggerId", _TEXT, f"The trigger; {TRIGGER} is all there is."),
    Parameter("deployed", _BOOLEAN, "Only those that are deployed, or only those that are not."),
    Parameter("installed", _BOOLEAN, "Only those of a template, or only those of an entry point."),
)

_TRIGGERS = _list(_object({"id": {**_TEXT, "enum": [TRIGGER]}, "version": {**_TEXT, "enum": [TRIGGER_VERSION]}}))
_PROGRAM = {
    "template": {**_TEXT, "enum": list(TEMPLATES)},
    "entry_point": {**_TEXT, "description": "The dotted path of an installed class, where there is no template."},
    "options": {**_OBJECT, "description": OPTIONS_TEXT},
    "mapping": {**_list(_OBJECT), "nullable": True, "description": "The rows of the table; null is the default one."},
    "code": {**_TEXT, "description": "Always empty: nothing runs code of clients."},
    "dependencies": _list(_OBJECT),
    "runtime": {**_TEXT, "enum": [RUNTIME]},
    "secrets": {**_list(_object({"name": _TEXT, "updated_at": _TIME})), "description": "Values are never returned."},
}
_TIMES = {"built_at": _TIME, "created_at": _TIME, "updated_at": _TIME}
_VERSION = {
    "id": _ID,
    "action_id": _ID,
    "number": _WHOLE,
    "deployed": _BOOLEAN,
    **_PROGRAM,
    "status": {**_TEXT, "enum": ["built"]},
    "errors": _list(_OBJECT),
    "supported_triggers": _TRIGGERS,
    **_TIMES,
}
_RESULT = {
    "action_name": _TEXT,
    "error": _object({"id": _TEXT, "msg": _TEXT}),
    "started_at": _TIME,
    "ended_at": _TIME,
}
_STEP = {
    "name": _TEXT,
    "title": _TEXT,
    "state": {**_TEXT, "enum": list(STATES)},
    "message": _TEXT,
    "advice": {**_TEXT, "description": "What to do about it."},
    "duration_ms": {"type": "number"},
    "details": _OBJECT,
}
_TEST_RESULT = {
    "execution_id": {**_ID, "description": "Only of what asked the server."},
    "outcome": {**_TEXT, "enum": [Trial.Outcome.PASSED.value, Trial.Outcome.FAILED.value]},
    "summary": _TEXT,
    "steps": _list(_object(_STEP, optional=("advice", "details"))),
    "recommended_update_mode": {**_TEXT, "description": "Of a write check: the first way of updating that did what it should."},
    "outbound_addresses": {**_list(_TEXT), "description": "From where requests come."},
    "method": _TEXT,
    "body": {**_TEXT, "description": "Of a mapping: exactly what would be sent."},
    "in_scope": {**_BOOLEAN, "description": "Of a mapping: whether it would be sent at all."},
    "left_out": {**_list(_TEXT), "description": "Of a mapping: values that cannot be sent, each with the reason."},
    "notes": {**_list(_TEXT), "description": "Of a mapping: what the server will answer, such as 409 to a taken userName."},
}
COMPONENTS: dict[str, Schema] = {
    # Nothing is required of either: `fields` leaves out what it does not name.
    "Action": _optional(
        {
            "id": _ID,
            "name": _TEXT,
            "supported_triggers": _TRIGGERS,
            **_PROGRAM,
            "status": {**_TEXT, "enum": ["pending", "built", "failed"]},
            "all_changes_deployed": _BOOLEAN,
            "current_version": VERSION,
            "deployed_version": VERSION,
            **_TIMES,
            "warnings": {**_list(_TEXT), "description": "About the draft; only where there are any."},
        },
    ),
    "ActionVersion": _optional({**_VERSION, "action": _OBJECT}),
    "ActionExecution": _object(
        {
            "id": _ID,
            "trigger_id": {**_TEXT, "enum": [TRIGGER]},
            "status": {**_TEXT, "enum": ["pending", "final"]},
            "results": _list(_object(_RESULT, optional=("error", "ended_at"))),
            "created_at": _TIME,
            "updated_at": _TIME,
        }
    ),
    "ActionTestResult": _object(
        {
            "payload": _object(
                _TEST_RESULT,
                optional=tuple(_TEST_RESULT),
            )
        }
    ),
}
ACTION_FIELDS = fields_of(COMPONENTS["Action"])
VERSION_FIELDS = fields_of(COMPONENTS["ActionVersion"])
TRIGGERS = _object(
    {
        "triggers": _list(
            _object(
                {
                    "id": {**_TEXT, "enum": [TRIGGER]},
                    "version": _TEXT,
                    "status": _TEXT,
                    "runtimes": _list(_TEXT),
                    "default_runtime": _TEXT,
                    "compatible_triggers": _list(_OBJECT),
                    "binding_policy": {**_TEXT, "enum": ["entity-bound"]},
                }
            )
        )
    }
)
