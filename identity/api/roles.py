"""Roles: `/roles`, `/roles/{id}`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import invalid_body, invalid_query
from identity.api.lookups import NO_ORGANIZATION, role_at
from identity.api.relation_bodies import organization_id
from identity.api.role_schemas import LIST_PARAMETERS, NOTHING, ROLE, ROLE_FIELDS, ROLES
from identity.documents.role import role_document
from identity.models import Role
from identity.services import roles
from identity.services.failures import NotFound

_LISTING = Listing("roles", ROLE_FIELDS)


class RoleToChange(Closed):
    """The members that a change of a role can contain. Its type and owner never change."""

    name = Text(required=False, max_length=50)
    description = Text(required=False, max_length=255, allow_blank=True, allow_null=True)


class RoleToCreate(Closed):
    name = Text(max_length=50)
    description = Text(required=False, max_length=255, allow_blank=True, allow_null=True)
    type = serializers.ChoiceField(required=False, choices=Role.Type.values)
    owner_id = organization_id(required=False)


class RoleEndpoint(Endpoint):
    """The roles of a tenant and of its organizations."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_roles", "List roles", ("read:roles",), 200, ROLES, parameters=LIST_PARAMETERS),
        # The status is 200 and not 201, because clients expect 200.
        "create": Operation("create_role", "Create a role", ("create:roles",), 200, ROLE, RoleToCreate, refuses=(409,)),
        "retrieve": Operation("get_role", "Read a role", ("read:roles",), 200, ROLE, refuses=(404,)),
        "partial_update": Operation("update_role", "Change a role", ("update:roles",), 200, ROLE, RoleToChange, refuses=(404, 409)),
        "destroy": Operation(
            "delete_role", "Delete a role and remove it from all users and groups", ("delete:roles",), 200, NOTHING, refuses=(404,)
        ),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        part, kind, owner = (text_of(query, name) for name in ("name_filter", "type", "owner_id"))
        if kind not in (None, *Role.Type.values):
            raise invalid_query(f"Expected one of {', '.join(Role.Type.values)}", "type")
        wanted = {"name__icontains": part, "type": kind, "organization": owner}
        rows = Role.objects.filter(**{column: value for column, value in wanted.items() if value})
        return Response(answer_list(rows, query, _LISTING, role_document))

    def create(self, request: Request) -> Response:
        body = _without_null(self.body_of(request, RoleToCreate))
        owner = body.pop("owner_id", None)
        try:
            role = roles.create_role(tenant_id=self.tenant_id, organization_id=owner, **body)
        except NotFound as error:
            raise invalid_body(NO_ORGANIZATION, "owner_id") from error
        return Response(role_document(role))

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(role_document(role_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        changes = _without_null(self.body_of(request, RoleToChange))
        return Response(role_document(roles.update_role(tenant_id=self.tenant_id, role_id=id, changes=changes)))

    def destroy(self, request: Request, id: str) -> Response:
        roles.delete_role(tenant_id=self.tenant_id, role_id=id)
        return Response({})


def _without_null(body: dict[str, Any]) -> dict[str, Any]:
    """Replace null with an empty text: a description is never absent."""
    return {name: "" if value is None else value for name, value in body.items()}
