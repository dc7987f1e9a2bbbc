"""Endpoints for tests of an action, its executions, and triggers."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import not_supported
from identity.services.failures import Conflict, Invalid, NotFound
from provisioning.actions.registry import TRIGGER
from provisioning.actions.setups import Setup, deployed_setup, draft_setup
from provisioning.api.action_bodies import ActionToTest, BindingsToChange
from provisioning.api.action_schemas import BINDINGS, EXECUTION, TESTED, TRIGGERS
from provisioning.api.actions import action_at
from provisioning.api.offset_page import PAGE_PARAMETERS, answer_page
from provisioning.documents.actions import TRIGGER_DOCUMENT
from provisioning.documents.executions import execution_document
from provisioning.models import Action
from provisioning.runs.failures import Misconfigured
from provisioning.trials.connection_test import run_connection_test
from provisioning.trials.event_trials import run_for_event
from provisioning.trials.mapping_preview import mapping_preview
from provisioning.trials.user_run import run_for_user

_READ = ("read:actions",)
# If a payload has no member `test`, one of these members selects the test.
_IMPLIED = {"user_id": "user", "event_type": "event"}
_UPDATE = ("update:actions",)


class ActionTestEndpoint(Endpoint):
    """Runs a test of an action: connection, user, mapping or event."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation("test_action", "Test an action", ("create:actions",), 200, TESTED, ActionToTest, refuses=(404, 409)),
    }

    def create(self, request: Request, id: str) -> Response:
        payload = self.body_of(request, ActionToTest)["payload"]
        action = action_at(id)
        test = payload.get("test") or next((name for member, name in _IMPLIED.items() if member in payload), "connection")
        if test == "event" and "event_type" not in payload:
            raise Invalid({"payload.event_type": ["Missing required property: event_type"]})
        if test in ("user", "mapping") and "user_id" not in payload:
            raise Invalid({"payload.user_id": ["Missing required property: user_id"]})
        try:
            return Response({"payload": self._tested(request, test, action, payload)})
        except Misconfigured as error:
            raise Conflict(str(error)) from error

    def _tested(self, request: Request, test: str, action: Action, payload: dict[str, Any]) -> dict[str, Any]:
        actor = f"client {request.user.client_id}"  # type: ignore[union-attr]  # the client behind the token
        if test == "connection":
            return run_connection_test(draft_setup(action), actor=actor, with_write_check=payload.get("canary", False)).document
        if test == "event":
            setup = _setup(action, payload, dry_run=True)
            return run_for_event(setup, event_type=payload["event_type"], data=payload.get("data"), actor=actor).document
        if test == "user":
            dry_run = payload.get("dry_run", True)
            return run_for_user(_setup(action, payload, dry_run=dry_run), user_id=payload["user_id"], actor=actor, dry_run=dry_run).document
        shown = mapping_preview(
            _setup(action, payload, dry_run=True),
            user_id=payload["user_id"],
            operation=payload.get("operation", "update"),
            **({"mapping": payload["mapping"]} if "mapping" in payload else {}),
        )
        return {
            "method": shown.method,
            "body": shown.body.decode(),
            "in_scope": shown.is_in_scope,
            "left_out": list(shown.left_out),
            "notes": list(shown.notes),
        }


def _setup(action: Action, payload: dict[str, Any], *, dry_run: bool) -> Setup:
    """Return the deployed version.

    Return the draft if the request selects it, or if the request is a dry run and the action is not deployed.
    """
    if payload.get("draft", False):
        return draft_setup(action)
    deployed = deployed_setup(tenant_id=action.tenant_id, action_id=action.pk)
    if deployed is None and not dry_run:
        raise Conflict("Deploy the action first: only a deployed version writes users.")
    return deployed or draft_setup(action)


class ExecutionEndpoint(Endpoint):
    """The result of one execution of an action."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation("get_action_execution", "Read an execution (kept for ten days)", _READ, 200, EXECUTION, refuses=(404,)),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(execution_document(tenant_id=self.tenant_id, identifier=id))


class TriggerEndpoint(Endpoint):
    """Lists the triggers of actions."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_action_triggers", "List the triggers of actions", _READ, 200, TRIGGERS),
    }

    def list(self, request: Request) -> Response:
        return Response({"triggers": [TRIGGER_DOCUMENT]})


class BindingEndpoint(Endpoint):
    """The actions that are bound to a trigger.

    The list is always empty, because actions are bound to streams: each stream contains the id of its action.
    """

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_action_bindings", "List the bindings of a trigger", _READ, 200, BINDINGS, parameters=PAGE_PARAMETERS, refuses=(404,)
        ),
        "partial_update": Operation(
            "update_action_bindings", "Change the bindings of a trigger", _UPDATE, 200, BINDINGS, BindingsToChange, refuses=(404,)
        ),
    }

    def list(self, request: Request, trigger_id: str) -> Response:
        _check_trigger(trigger_id)
        return Response(answer_page(Action.objects.none(), request.query_params, "bindings", lambda row: row))

    def partial_update(self, request: Request, trigger_id: str) -> Response:
        _check_trigger(trigger_id)
        if self.body_of(request, BindingsToChange)["bindings"]:
            raise not_supported("An event stream names its action: set destination.configuration.action_id of the stream.")
        return self.list(request, trigger_id)


def _check_trigger(trigger_id: str) -> None:
    if trigger_id != TRIGGER:
        raise NotFound("The trigger does not exist.")
