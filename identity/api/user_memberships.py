"""Relations of a user: organizations, groups, and effective roles."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import invalid_query
from foundation.timestamps import wire_time
from identity.api.group_schemas import GROUP_FIELDS, TAKEN_GROUPS
from identity.api.lookups import role_at, user_at
from identity.api.organizations.organization_schemas import ORGANIZATION_FIELDS, ORGANIZATIONS
from identity.api.role_schemas import EFFECTIVE_ROLE_FIELDS, EFFECTIVE_ROLES, ROLE_ID
from identity.documents.group import group_resource
from identity.documents.organization import organization_resource
from identity.documents.role import effective_role_document
from identity.models import GroupMember, OrganizationMember, Role
from identity.services.effective_roles import effective_roles, groups_with_role

_GROUPS = Listing("groups", GROUP_FIELDS, only_take=True)
_MEMBERSHIPS = Listing("groups", (*GROUP_FIELDS, "membership_created_at"), only_take=True)
_EFFECTIVE = Listing("roles", EFFECTIVE_ROLE_FIELDS, only_take=True)


class UserOrganizationEndpoint(Endpoint):
    """The organizations of which a user is a member."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_organizations",
            "List the organizations of a user",
            ("read:organizations",),
            200,
            ORGANIZATIONS,
            parameters=LIST_FORMS,
            refuses=(404,),
            snapshot_of="organization.member",
        )
    }

    def list(self, request: Request, id: str) -> Response:
        rows = OrganizationMember.objects.filter(user=user_at(id)).select_related("organization")
        listing = Listing("organizations", ORGANIZATION_FIELDS)
        return Response(answer_list(rows, request.query_params, listing, lambda row: organization_resource(row.organization)))


class UserGroupEndpoint(Endpoint):
    """The groups of which a user is a member."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_groups",
            "List the groups of a user",
            ("read:groups",),
            200,
            TAKEN_GROUPS,
            parameters=TAKE_FORM,
            refuses=(404,),
            snapshot_of="group.member",
        )
    }

    def list(self, request: Request, id: str) -> Response:
        rows = GroupMember.objects.filter(user=user_at(id)).select_related("group")

        def render(row: GroupMember) -> dict[str, Any]:
            return {**group_resource(row.group), "membership_created_at": wire_time(row.created_at)}

        return Response(answer_list(rows, request.query_params, _MEMBERSHIPS, render))


class EffectiveRoleEndpoint(Endpoint):
    """The effective roles of a user in the whole tenant: assigned directly or through groups."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_effective_roles",
            "List the effective roles of a user",
            ("read:user_effective_roles",),
            200,
            EFFECTIVE_ROLES,
            parameters=TAKE_FORM,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        effective = effective_roles(user_at(id))

        def render(role: Role) -> dict[str, Any]:
            return effective_role_document(role, effective.sources_of(role.pk))

        return Response(answer_list(effective.rows(self.tenant_id), request.query_params, _EFFECTIVE, render))


class EffectiveRoleSourceEndpoint(Endpoint):
    """The groups through which a user has a role."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_role_source_groups",
            "List the groups through which a user has a role",
            ("read:user_role_source_groups",),
            200,
            TAKEN_GROUPS,
            parameters=ROLE_ID,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        user = user_at(id)
        role_id = text_of(request.query_params, "role_id")
        if role_id is None:
            raise invalid_query("Missing required property", "role_id")
        return Response(answer_list(groups_with_role(user, role_at(role_id).pk), request.query_params, _GROUPS, group_resource))
