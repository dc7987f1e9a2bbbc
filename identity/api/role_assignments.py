"""Assignments of roles for the whole tenant: `/roles/{id}/users`, `/roles/{id}/groups`, `/users/{id}/roles`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from identity.api.group_schemas import GROUP_FIELDS, TAKEN_GROUPS
from identity.api.lookups import role_at, short_user, user_at
from identity.api.relation_bodies import GroupsToChange, RolesToChange, UsersToChange
from identity.api.role_schemas import NOTHING, ROLE_FIELDS, ROLES, SHORT_USER_FIELDS, USERS
from identity.documents.group import group_resource
from identity.documents.role import role_document
from identity.models import GroupRole, UserRole
from identity.services import groups, roles


class RoleUserEndpoint(Endpoint):
    """The users with a direct assignment of a role. Clients remove these assignments at `/users/{id}/roles`."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_role_users",
            "List the users of a role",
            ("read:users read:roles", "read:role_members"),
            200,
            USERS,
            parameters=LIST_FORMS,
            refuses=(404,),
        ),
        "create": Operation(
            "assign_role_users",
            "Assign a role to users",
            ("update:roles", "create:role_members"),
            200,
            NOTHING,
            UsersToChange,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = UserRole.objects.filter(role=role_at(id)).select_related("user")
        return Response(answer_list(rows, request.query_params, Listing("users", SHORT_USER_FIELDS), lambda row: short_user(row.user)))

    def create(self, request: Request, id: str) -> Response:
        users = self.body_of(request, UsersToChange)["users"]
        roles.assign_role_to_users(tenant_id=self.tenant_id, role_id=id, user_ids=users)
        return Response({})


class RoleGroupEndpoint(Endpoint):
    """The groups whose members have a role."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_role_groups",
            "List the groups of a role",
            ("read:group_roles",),
            200,
            TAKEN_GROUPS,
            parameters=TAKE_FORM,
            refuses=(404,),
            snapshot_of="group.role",
        ),
        "create": Operation(
            "assign_role_groups", "Assign a role to groups", ("create:group_roles",), 204, body=GroupsToChange, refuses=(404,)
        ),
        "destroy": Operation(
            "remove_role_groups", "Remove a role from groups", ("delete:group_roles",), 204, body=GroupsToChange, refuses=(404,)
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = GroupRole.objects.filter(role=role_at(id)).select_related("group")
        listing = Listing("groups", GROUP_FIELDS, only_take=True)
        return Response(answer_list(rows, request.query_params, listing, lambda row: group_resource(row.group)))

    def create(self, request: Request, id: str) -> Response:
        named = self.body_of(request, GroupsToChange)["groups"]
        groups.assign_role_to_groups(tenant_id=self.tenant_id, role_id=id, group_ids=named)
        return Response(status=204)

    def destroy(self, request: Request, id: str) -> Response:
        named = self.body_of(request, GroupsToChange)["groups"]
        groups.remove_role_from_groups(tenant_id=self.tenant_id, role_id=id, group_ids=named)
        return Response(status=204)


class UserRoleEndpoint(Endpoint):
    """The roles that are assigned to a user directly."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_roles",
            "List the roles of a user",
            ("read:users read:roles", "read:role_members"),
            200,
            ROLES,
            parameters=LIST_FORMS,
            refuses=(404,),
        ),
        "create": Operation(
            "assign_user_roles",
            "Assign roles to a user",
            ("update:users", "create:role_members"),
            204,
            body=RolesToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "remove_user_roles",
            "Remove roles from a user",
            ("update:users", "delete:role_members"),
            204,
            body=RolesToChange,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = UserRole.objects.filter(user=user_at(id)).select_related("role")
        return Response(answer_list(rows, request.query_params, Listing("roles", ROLE_FIELDS), lambda row: role_document(row.role)))

    def create(self, request: Request, id: str) -> Response:
        user = user_at(id)
        named = self.body_of(request, RolesToChange)["roles"]
        roles.assign_user_roles(tenant_id=self.tenant_id, user_id=user.user_id, role_ids=named)
        return Response(status=204)

    def destroy(self, request: Request, id: str) -> Response:
        user = user_at(id)
        named = self.body_of(request, RolesToChange)["roles"]
        roles.remove_user_roles(tenant_id=self.tenant_id, user_id=user.user_id, role_ids=named)
        return Response(status=204)
