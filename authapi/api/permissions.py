"""Permissions: `/roles/{id}/permissions`, `/users/{id}/permissions`, and the effective permissions of a user."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.resource_schemas import (
    EFFECTIVE_PARAMETERS,
    EFFECTIVE_PERMISSIONS,
    PERMISSION_FIELDS,
    PERMISSIONS,
    SOURCE_PARAMETERS,
    SOURCED_PERMISSION_FIELDS,
    USER_PERMISSIONS,
)
from authapi.api.resource_servers import INEXISTENT_RESOURCE_SERVER
from authapi.models import Permission
from authapi.services import permissions
from authapi.services.permissions import Named, permissions_of_role, permissions_of_user
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, ListOf, Text
from foundation.api.list_schemas import LIST_FORMS
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import invalid_query
from identity.api.lookups import role_at, user_at
from identity.api.role_schemas import EFFECTIVE_ROLE_FIELDS, EFFECTIVE_ROLES, NOTHING
from identity.documents.role import effective_role_document
from identity.models import Role

_LISTING = Listing("permissions", PERMISSION_FIELDS)
_SOURCED = Listing("permissions", SOURCED_PERMISSION_FIELDS)
_TAKEN = Listing("permissions", SOURCED_PERMISSION_FIELDS, only_take=True)
_EFFECTIVE = Listing("roles", EFFECTIVE_ROLE_FIELDS, only_take=True)


class PermissionToName(Closed):
    resource_server_identifier = Text(max_length=600)
    permission_name = Text(max_length=280)


class PermissionsToChange(Closed):
    permissions = ListOf(child=PermissionToName(), min_length=1)


class RolePermissionEndpoint(Endpoint):
    """The permissions of a role."""

    # `role_at` finds the role before a function of `services.permissions` runs. So if that function raises `NotFound`, the API does not
    # exist.
    not_found_code = INEXISTENT_RESOURCE_SERVER
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_role_permissions",
            "List the permissions of a role",
            ("read:roles",),
            200,
            PERMISSIONS,
            parameters=LIST_FORMS,
            refuses=(404,),
        ),
        "create": Operation(
            "add_role_permissions", "Add permissions to a role", ("update:roles",), 201, NOTHING, PermissionsToChange, refuses=(404,)
        ),
        "destroy": Operation(
            "remove_role_permissions", "Remove permissions from a role", ("update:roles",), 204, body=PermissionsToChange, refuses=(404,)
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        return Response(answer_list(permissions_of_role(role_at(id)), request.query_params, _LISTING, permission_resource))

    def create(self, request: Request, id: str) -> Response:
        role, named = role_at(id), named_in(self.body_of(request, PermissionsToChange))
        permissions.add_role_permissions(tenant_id=self.tenant_id, role_id=role.pk, permissions=named)
        return Response({}, status=201)

    def destroy(self, request: Request, id: str) -> Response:
        role, named = role_at(id), named_in(self.body_of(request, PermissionsToChange))
        permissions.remove_role_permissions(tenant_id=self.tenant_id, role_id=role.pk, permissions=named)
        return Response(status=204)


class UserPermissionEndpoint(Endpoint):
    """Lists the direct permissions of a user together with the permissions of the user's roles, and changes the direct permissions."""

    not_found_code = INEXISTENT_RESOURCE_SERVER
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_permissions",
            "List the permissions of a user",
            ("read:users",),
            200,
            USER_PERMISSIONS,
            parameters=LIST_FORMS,
            refuses=(404,),
        ),
        "create": Operation(
            "add_user_permissions", "Add permissions to a user", ("update:users",), 201, NOTHING, PermissionsToChange, refuses=(404,)
        ),
        "destroy": Operation(
            "remove_user_permissions", "Remove permissions from a user", ("update:users",), 204, body=PermissionsToChange, refuses=(404,)
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        found = permissions_of_user(user_at(id))
        direct, roles = found.direct_keys(), found.roles_by_permission()

        def render(row: Permission) -> dict[str, Any]:
            own = [{"source_id": "", "source_name": "", "source_type": "DIRECT"}] if row.pk in direct else []
            others = [{"source_id": role.pk, "source_name": role.name, "source_type": "ROLE"} for role in roles.get(row.pk, ())]
            return {**permission_resource(row), "sources": own + others}

        return Response(answer_list(found.rows(), request.query_params, _SOURCED, render))

    def create(self, request: Request, id: str) -> Response:
        user, named = user_at(id), named_in(self.body_of(request, PermissionsToChange))
        permissions.add_user_permissions(tenant_id=self.tenant_id, user_id=user.user_id, permissions=named)
        return Response({}, status=201)

    def destroy(self, request: Request, id: str) -> Response:
        user, named = user_at(id), named_in(self.body_of(request, PermissionsToChange))
        permissions.remove_user_permissions(tenant_id=self.tenant_id, user_id=user.user_id, permissions=named)
        return Response(status=204)


class EffectivePermissionEndpoint(Endpoint):
    """The effective permissions of a user at one API."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_effective_permissions",
            "List the effective permissions of a user at an API",
            ("read:user_effective_permissions",),
            200,
            EFFECTIVE_PERMISSIONS,
            parameters=EFFECTIVE_PARAMETERS,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        found = permissions_of_user(user_at(id))
        rows = found.rows().filter(api_resource__identifier=_required(request, "resource_server_identifier"))
        direct, roles = found.direct_keys(), found.roles_by_permission()

        def render(row: Permission) -> dict[str, Any]:
            ways = {"direct": row.pk in direct, "roles": row.pk in roles}
            return {**permission_resource(row), "sources": [name for name, is_so in ways.items() if is_so]}

        return Response(answer_list(rows, request.query_params, _TAKEN, render))


class EffectivePermissionSourceEndpoint(Endpoint):
    """The roles through which a user has a permission."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_permission_source_roles",
            "List the roles through which a user has a permission",
            ("read:user_permission_source_roles",),
            200,
            EFFECTIVE_ROLES,
            parameters=SOURCE_PARAMETERS,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        found = permissions_of_user(user_at(id))
        identifier, name = _required(request, "resource_server_identifier"), _required(request, "permission_name")
        keys = list(found.rows().filter(api_resource__identifier=identifier, value=name).values_list("pk", flat=True))
        by_permission = found.roles_by_permission()
        rows = Role.objects.filter(pk__in=[role.pk for key in keys for role in by_permission.get(key, ())])

        def render(role: Role) -> dict[str, Any]:
            return effective_role_document(role, found.roles.sources_of(role.pk))

        return Response(answer_list(rows, request.query_params, _EFFECTIVE, render))


def permission_resource(row: Permission) -> dict[str, Any]:
    """Return the permission. Expects its API to be loaded."""
    resource = row.api_resource
    return {
        "permission_name": row.value,
        "description": resource.scope_descriptions.get(row.value, ""),
        "resource_server_name": resource.name,
        "resource_server_identifier": resource.identifier,
    }


def named_in(body: dict[str, Any]) -> list[Named]:
    """Return the permissions in a checked body."""
    return [Named(item["resource_server_identifier"], item["permission_name"]) for item in body["permissions"]]


def _required(request: Request, name: str) -> str:
    value = text_of(request.query_params, name)
    if value is None:
        raise invalid_query("Missing required property", name)
    return value
