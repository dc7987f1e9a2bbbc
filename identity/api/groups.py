"""Groups: `/groups`, `/groups/{id}`, and the members and roles of a group below its URL."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.list_schemas import PROJECTION, TAKE_FORM
from foundation.api.operations import Lifecycle, Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import invalid_body
from identity.api.group_schemas import GROUP, GROUP_FIELDS, LIST_PARAMETERS, MEMBER_FIELDS, MEMBERS, TAKEN_GROUPS
from identity.api.lookups import check_group_id, group_at
from identity.api.relation_bodies import GroupMembersToChange, RolesToChange, connection_id, member_type, organization_id
from identity.api.role_schemas import ROLE_FIELDS, TAKEN_ROLES
from identity.documents.group import group_member_resource, group_resource
from identity.documents.role import role_document
from identity.models import Group, GroupMember, GroupRole
from identity.services import groups
from identity.services.failures import NotFound

_LISTING = Listing("groups", GROUP_FIELDS, only_take=True)


class GroupToChange(Closed):
    """The members that a change of a group can contain. Its type and owner never change."""

    name = Text(required=False, max_length=128)
    external_id = Text(required=False, max_length=256, allow_null=True)
    description = Text(required=False, max_length=512, allow_blank=True, allow_null=True)


class GroupToCreate(Closed):
    name = Text(max_length=128)
    type = serializers.ChoiceField(choices=Group.Type.values)
    connection_id = connection_id(required=False)
    organization_id = organization_id(required=False)
    external_id = Text(required=False, max_length=256)
    description = Text(required=False, max_length=512, allow_blank=True)


class GroupEndpoint(Endpoint):
    """The groups of a tenant, of its connections and of its organizations."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_groups", "List groups", ("read:groups",), 200, TAKEN_GROUPS, parameters=LIST_PARAMETERS, snapshot_of="group"
        ),
        "create": Operation(
            "create_group",
            "Create a group",
            ("create:groups",),
            201,
            GROUP,
            GroupToCreate,
            refuses=(409,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "retrieve": Operation("get_group", "Read a group", ("read:groups",), 200, GROUP, parameters=PROJECTION, refuses=(404,)),
        "partial_update": Operation(
            "update_group",
            "Change a group",
            ("update:groups",),
            200,
            GROUP,
            GroupToChange,
            refuses=(404, 409),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "destroy": Operation("delete_group", "Delete a group and its memberships", ("delete:groups",), 204, refuses=(404,)),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        wanted = {name: text_of(query, name) for name in ("connection_id", "name", "external_id")}
        rows = Group.objects.filter(**{column: value for column, value in wanted.items() if value})
        part = text_of(query, "search")
        if part:
            rows = rows.filter(Q(name__icontains=part) | Q(external_id__icontains=part))
        return Response(answer_list(rows, query, _LISTING, group_resource))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, GroupToCreate)
        try:
            group = groups.create_group(tenant_id=self.tenant_id, **body)
        except NotFound as error:
            raise invalid_body(str(error), "connection_id" if "connection_id" in body else "organization_id") from error
        return Response(group_resource(group), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(projection_of(request.query_params, GROUP_FIELDS)(group_resource(group_at(id))))

    def partial_update(self, request: Request, id: str) -> Response:
        check_group_id(id)
        changes = self.body_of(request, GroupToChange)
        if changes.get("description", "") is None:
            changes["description"] = ""
        return Response(group_resource(groups.update_group(tenant_id=self.tenant_id, group_id=id, changes=changes)))

    def destroy(self, request: Request, id: str) -> Response:
        check_group_id(id)
        groups.delete_group(tenant_id=self.tenant_id, group_id=id)
        return Response(status=204)


class GroupMemberEndpoint(Endpoint):
    """The users and nested groups of a group."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_group_members",
            "List the members of a group",
            ("read:group_members",),
            200,
            MEMBERS,
            parameters=TAKE_FORM,
            refuses=(404,),
            snapshot_of="group.member",
        ),
        "create": Operation(
            "add_group_members",
            "Add members to a group",
            ("create:group_members",),
            204,
            body=GroupMembersToChange,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "destroy": Operation(
            "remove_group_members",
            "Remove members from a group",
            ("delete:group_members",),
            204,
            body=GroupMembersToChange,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = GroupMember.objects.filter(group=group_at(id)).select_related("user", "nested_group")
        return Response(answer_list(rows, request.query_params, Listing("members", MEMBER_FIELDS, only_take=True), group_member_resource))

    def create(self, request: Request, id: str) -> Response:
        check_group_id(id)
        members = self.body_of(request, GroupMembersToChange)["members"]
        users = [member for member in members if member_type(member) == "user"]
        nested = [member for member in members if member_type(member) == "group"]
        groups.add_group_members(tenant_id=self.tenant_id, group_id=id, user_ids=users, nested_ids=nested)
        return Response(status=204)

    def destroy(self, request: Request, id: str) -> Response:
        check_group_id(id)
        members = self.body_of(request, GroupMembersToChange)["members"]
        groups.remove_group_members(tenant_id=self.tenant_id, group_id=id, member_ids=members)
        return Response(status=204)


class GroupRoleEndpoint(Endpoint):
    """The roles that every member of a group has in the whole tenant."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_group_roles",
            "List the roles of a group",
            ("read:group_roles",),
            200,
            TAKEN_ROLES,
            parameters=TAKE_FORM,
            refuses=(404,),
            snapshot_of="group.role",
        ),
        "create": Operation(
            "assign_group_roles", "Assign roles to a group", ("create:group_roles",), 204, body=RolesToChange, refuses=(404,)
        ),
        "destroy": Operation(
            "remove_group_roles", "Remove roles from a group", ("delete:group_roles",), 204, body=RolesToChange, refuses=(404,)
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = GroupRole.objects.filter(group=group_at(id)).select_related("role")
        return Response(
            answer_list(rows, request.query_params, Listing("roles", ROLE_FIELDS, only_take=True), lambda row: role_document(row.role))
        )

    def create(self, request: Request, id: str) -> Response:
        check_group_id(id)
        named = self.body_of(request, RolesToChange)["roles"]
        groups.assign_group_roles(tenant_id=self.tenant_id, group_id=id, role_ids=named)
        return Response(status=204)

    def destroy(self, request: Request, id: str) -> Response:
        check_group_id(id)
        named = self.body_of(request, RolesToChange)["roles"]
        groups.remove_group_roles(tenant_id=self.tenant_id, group_id=id, role_ids=named)
        return Response(status=204)
