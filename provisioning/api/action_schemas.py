"""OpenAPI schemas of actions, their versions, tests and executions."""

from __future__ import annotations

from typing import Any

from foundation.api.list_schemas import PROJECTION, fields_of, reference
from foundation.api.operations import SWITCH, TEXT, TIME, WHOLE, Parameter, Schema
from provisioning.actions.registry import TEMPLATES, TRIGGER, TRIGGER_VERSION
from provisioning.api.action_bodies import OPTIONS_TEXT
from provisioning.api.offset_page import PAGE_PARAMETERS, page_schema
from provisioning.documents.actions import RUNTIME
from provisioning.models import Trial
from provisioning.trials.steps import STATES

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
FORCE = Parameter(
    "force", {**SWITCH, "default": False}, "True: delete the action even if a stream is bound to it. That stream is then held."
)
VERSION_PARAMETERS = (*PAGE_PARAMETERS, *PROJECTION)
LIST_PARAMETERS = (
    *VERSION_PARAMETERS,
    Parameter("actionName", TEXT, "The exact name."),
    Parameter("triggerId", TEXT, f"The trigger; only {TRIGGER} exists."),
    Parameter("deployed", SWITCH, "true: only deployed actions; false: only actions that are not deployed."),
    Parameter("installed", SWITCH, "true: only actions of a template; false: only actions of an entry point."),
)

_TRIGGERS = _list(_object({"id": {**TEXT, "enum": [TRIGGER]}, "version": {**TEXT, "enum": [TRIGGER_VERSION]}}))
_PROGRAM = {
    "template": {**TEXT, "enum": list(TEMPLATES)},
    "entry_point": {**TEXT, "description": "The dotted path of an installed class; empty for a template."},
    "options": {**_OBJECT, "description": OPTIONS_TEXT},
    "mapping": {**_list(_OBJECT), "nullable": True, "description": "The rows of the mapping table; null is the default table."},
    "code": {**TEXT, "description": "Always empty: custom code is not supported."},
    "dependencies": _list(_OBJECT),
    "runtime": {**TEXT, "enum": [RUNTIME]},
    "secrets": {**_list(_object({"name": TEXT, "updated_at": TIME})), "description": "Values are never returned."},
}
_TIMES = {"built_at": TIME, "created_at": TIME, "updated_at": TIME}
_VERSION = {
    "id": _ID,
    "action_id": _ID,
    "number": WHOLE,
    "deployed": SWITCH,
    **_PROGRAM,
    "status": {**TEXT, "enum": ["built"]},
    "errors": _list(_OBJECT),
    "supported_triggers": _TRIGGERS,
    **_TIMES,
}
_RESULT = {
    "action_name": TEXT,
    "error": _object({"id": TEXT, "msg": TEXT}),
    "started_at": TIME,
    "ended_at": TIME,
}
_STEP = {
    "name": TEXT,
    "title": TEXT,
    "state": {**TEXT, "enum": list(STATES)},
    "message": TEXT,
    "advice": {**TEXT, "description": "How to fix the problem."},
    "duration_ms": {"type": "number"},
    "details": _OBJECT,
}
_TEST_RESULT = {
    "execution_id": {**_ID, "description": "Only for tests that send requests."},
    "outcome": {**TEXT, "enum": [Trial.Outcome.PASSED.value, Trial.Outcome.FAILED.value]},
    "summary": TEXT,
    "steps": _list(_object(_STEP, optional=("advice", "details"))),
    "recommended_update_mode": {**TEXT, "description": "Only for a write check: the first update mode that worked."},
    "outbound_addresses": {**_list(TEXT), "description": "Source addresses of outbound requests."},
    "method": TEXT,
    "body": {**TEXT, "description": "Only for a mapping: the exact request body."},
    "in_scope": {**SWITCH, "description": "Only for a mapping: whether the user is in the scope."},
    "left_out": {**_list(TEXT), "description": "Only for a mapping: values that cannot be sent, with reasons."},
    "notes": {**_list(TEXT), "description": "Only for a mapping: expected answers of the server, such as 409 for a taken userName."},
}
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` can omit any of them.
    "Action": _optional(
        {
            "id": _ID,
            "name": TEXT,
            "supported_triggers": _TRIGGERS,
            **_PROGRAM,
            "status": {**TEXT, "enum": ["pending", "built", "failed"]},
            "all_changes_deployed": SWITCH,
            "current_version": VERSION,
            "deployed_version": VERSION,
            **_TIMES,
            "warnings": {**_list(TEXT), "description": "Warnings about the draft; omitted if there are none."},
        },
    ),
    "ActionVersion": _optional({**_VERSION, "action": _OBJECT}),
    "ActionExecution": _object(
        {
            "id": _ID,
            "trigger_id": {**TEXT, "enum": [TRIGGER]},
            "status": {**TEXT, "enum": ["pending", "final"]},
            "results": _list(_object(_RESULT, optional=("error", "ended_at"))),
            "created_at": TIME,
            "updated_at": TIME,
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
                    "id": {**TEXT, "enum": [TRIGGER]},
                    "version": TEXT,
                    "status": TEXT,
                    "runtimes": _list(TEXT),
                    "default_runtime": TEXT,
                    "compatible_triggers": _list(_OBJECT),
                    "binding_policy": {**TEXT, "enum": ["entity-bound"]},
                }
            )
        )
    }
)
