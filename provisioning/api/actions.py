"""Actions: `/actions/actions`, their deployment and their versions."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.queries import switch_of, text_of
from foundation.api.refusals import not_supported
from identity.services.failures import Invalid, NotFound
from provisioning.actions.registry import TRIGGER
from provisioning.api.action_bodies import ActionToChange, ActionToCreate, VersionToDeploy
from provisioning.api.action_schemas import (
    ACTION,
    ACTION_FIELDS,
    ACTIONS,
    FORCE,
    LIST_PARAMETERS,
    VERSION,
    VERSION_FIELDS,
    VERSION_PARAMETERS,
    VERSIONS,
)
from provisioning.api.offset_page import answer_page
from provisioning.documents.actions import RUNTIME, action_document, version_document, with_details
from provisioning.models import Action, ActionVersion
from provisioning.services import actions

_READ = ("read:actions",)
_CREATE = ("create:actions",)


class ActionEndpoint(Endpoint):
    """The actions of a tenant, with the fields of their drafts."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_actions", "List actions", _READ, 200, ACTIONS, parameters=LIST_PARAMETERS),
        "create": Operation("create_action", "Create an action", _CREATE, 201, ACTION, ActionToCreate, refuses=(409,)),
        "retrieve": Operation("get_action", "Read an action", _READ, 200, ACTION, refuses=(404,)),
        "partial_update": Operation(
            "update_action", "Change the draft of an action", ("update:actions",), 200, ACTION, ActionToChange, refuses=(404, 409)
        ),
        "destroy": Operation("delete_action", "Delete an action", ("delete:actions",), 204, parameters=(FORCE,), refuses=(404, 409)),
        "deploy": Operation("deploy_action", "Deploy the draft of an action", _CREATE, 202, VERSION, refuses=(404,)),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        rows = Action.objects.all()
        if (name := text_of(query, "actionName")) is not None:
            rows = rows.filter(name=name)
        if (trigger := text_of(query, "triggerId")) is not None and trigger != TRIGGER:
            rows = rows.none()
        if query.get("deployed"):
            rows = rows.filter(is_deployed=switch_of(query, "deployed", default=False))
        if query.get("installed"):
            wanted = switch_of(query, "installed", default=False)
            rows = rows.exclude(template="") if wanted else rows.filter(template="")
        return Response(answer_page(with_details(rows), query, "actions", action_document, fields=ACTION_FIELDS))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, ActionToCreate)
        _check_program(body)
        if ("template" in body) == ("entry_point" in body):
            raise Invalid({"template": ["Missing required property: either template or entry_point"]})
        action = actions.create_action(
            tenant_id=self.tenant_id,
            name=body["name"],
            template=body.get("template", ""),
            entry_point_path=body.get("entry_point", ""),
            options=body.get("options"),
            mapping=body.get("mapping"),
            secrets=_new_secrets(body),
            deploy=body.get("deploy", False),
        )
        return Response(action_document(self._found(action.pk)), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(action_document(self._found(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, ActionToChange)
        _check_program(body)
        sent = body.get("secrets")
        action = actions.update_action(
            tenant_id=self.tenant_id,
            action_id=id,
            changes={name: body[name] for name in ("name", "entry_point", "options", "mapping") if name in body},
            secrets={secret["name"]: secret["value"] for secret in sent or () if "value" in secret},
            only_secrets=None if sent is None else [secret["name"] for secret in sent],
        )
        return Response(action_document(self._found(action.pk)))

    def destroy(self, request: Request, id: str) -> Response:
        force = switch_of(request.query_params, "force", default=False)
        actions.delete_action(tenant_id=self.tenant_id, action_id=id, force=force)
        return Response(status=204)

    def deploy(self, request: Request, id: str) -> Response:
        action = actions.deploy_action(tenant_id=self.tenant_id, action_id=id)
        return Response(version_document(action.versions.select_related("action").get(is_deployed=True)), status=202)

    def _found(self, action_id: Any) -> Action:
        return action_at(action_id)


class VersionEndpoint(Endpoint):
    """Deployed versions of an action, and a new deployment of an earlier version."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_action_versions", "List the versions of an action", _READ, 200, VERSIONS, parameters=VERSION_PARAMETERS, refuses=(404,)
        ),
        "retrieve": Operation("get_action_version", "Read a version of an action", _READ, 200, VERSION, refuses=(404,)),
        "deploy": Operation(
            "deploy_action_version",
            "Deploy an earlier version of an action as a new one",
            _CREATE,
            202,
            VERSION,
            VersionToDeploy,
            refuses=(404, 409),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = ActionVersion.objects.filter(action=action_at(id)).select_related("action").order_by("-number")
        return Response(answer_page(rows, request.query_params, "versions", version_document, fields=VERSION_FIELDS))

    def retrieve(self, request: Request, id: str, version_id: str) -> Response:
        return Response(version_document(actions.version_of(action_at(id), version_id)))

    def deploy(self, request: Request, id: str, version_id: str) -> Response:
        body = self.body_of(request, VersionToDeploy)
        version = actions.deploy_version(
            tenant_id=self.tenant_id, action_id=id, version_id=version_id, update_draft=body.get("update_draft", False)
        )
        return Response(version_document(version), status=202)


def action_at(action_id: Any) -> Action:
    """Return the action of this tenant with the related rows of its document; raise `NotFound`."""
    try:
        action = with_details(Action.objects.filter(pk=action_id)).first()
    except ValidationError as error:
        raise NotFound("The action does not exist.") from error
    if action is None:
        raise NotFound("The action does not exist.")
    return action


def _check_program(body: dict[str, Any]) -> None:
    """Refuse custom code, its dependencies and modules, and any other runtime than `RUNTIME`; empty members are accepted."""
    if body.get("code"):
        raise not_supported("Custom code is not supported: name a template or an installed entry point.")
    for name in ("dependencies", "modules"):
        if body.get(name):
            raise not_supported(f"An action without custom code has no {name}.")
    if body.get("runtime", RUNTIME) != RUNTIME:
        raise not_supported(f"The only runtime is {RUNTIME}.")


def _new_secrets(body: dict[str, Any]) -> dict[str, str]:
    sent = body.get("secrets", ())
    for place, secret in enumerate(sent):
        if not secret.get("value"):
            raise Invalid({f"secrets[{place}].value": ["Missing required property: value"]})
    return {secret["name"]: secret["value"] for secret in sent}
