"""Groups in an organization, their roles in the organization, and the groups and members that have a role."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import TAKE_FORM
from foundation.api.operations import Lifecycle, Operation
from foundation.api.paging import Listing, answer_list
from identity.api.group_schemas import GROUP_FIELDS, TAKEN_GROUPS
from identity.api.lookups import check_group_id, group_at, organization_at, role_at, short_user
from identity.api.organizations.organization_schemas import TAKEN_MEMBERS
from identity.api.relation_bodies import RolesToChange
from identity.api.role_schemas import ROLE_FIELDS, SHORT_USER_FIELDS, TAKEN_ROLES
from identity.documents.group import group_resource
from identity.documents.role import role_document
from identity.models import Group, OrganizationGroupRole, OrganizationMemberRole
from identity.services import memberships

_GROUPS = Listing("groups", GROUP_FIELDS, only_take=True)


class OrganizationGroupEndpoint(Endpoint):
    """The groups that belong to an organization or have a role in it."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_groups",
            "List the groups of an organization",
            ("read:organization_groups",),
            200,
            TAKEN_GROUPS,
            parameters=TAKE_FORM,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
            snapshot_of="group",
        )
    }

    def list(self, request: Request, id: str) -> Response:
        organization = organization_at(id)
        with_role = OrganizationGroupRole.objects.filter(organization=organization).values("group")
        rows = Group.objects.filter(Q(organization=organization) | Q(pk__in=with_role))
        return Response(answer_list(rows, request.query_params, _GROUPS, group_resource))


class OrganizationGroupRoleEndpoint(Endpoint):
    """The roles that the members of a group have in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_group_roles",
            "List the roles of a group in an organization",
            ("read:organization_group_roles",),
            200,
            TAKEN_ROLES,
            parameters=TAKE_FORM,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
            snapshot_of="organization.group.role",
        ),
        "create": Operation(
            "assign_organization_group_roles",
            "Assign roles to a group in an organization",
            ("create:organization_group_roles",),
            204,
            body=RolesToChange,
            refuses=(404, 409),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "destroy": Operation(
            "remove_organization_group_roles",
            "Remove roles from a group in an organization",
            ("delete:organization_group_roles",),
            204,
            body=RolesToChange,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
    }

    def list(self, request: Request, id: str, group_id: str) -> Response:
        rows = OrganizationGroupRole.objects.filter(organization=organization_at(id), group=group_at(group_id)).select_related("role")
        listing = Listing("roles", ROLE_FIELDS, only_take=True)
        return Response(answer_list(rows, request.query_params, listing, lambda row: role_document(row.role)))

    def create(self, request: Request, id: str, group_id: str) -> Response:
        check_group_id(group_id, "group_id")
        named = self.body_of(request, RolesToChange)["roles"]
        memberships.assign_organization_group_roles(tenant_id=self.tenant_id, organization_id=id, group_id=group_id, role_ids=named)
        return Response(status=204)

    def destroy(self, request: Request, id: str, group_id: str) -> Response:
        check_group_id(group_id, "group_id")
        named = self.body_of(request, RolesToChange)["roles"]
        memberships.remove_organization_group_roles(tenant_id=self.tenant_id, organization_id=id, group_id=group_id, role_ids=named)
        return Response(status=204)


class OrganizationRoleGroupEndpoint(Endpoint):
    """The groups that have one role in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_role_groups",
            "List the groups with a role in an organization",
            ("read:roles read:organization_groups",),
            200,
            TAKEN_GROUPS,
            parameters=TAKE_FORM,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
            snapshot_of="organization.group.role",
        )
    }

    def list(self, request: Request, id: str, role_id: str) -> Response:
        rows = OrganizationGroupRole.objects.filter(organization=organization_at(id), role=role_at(role_id)).select_related("group")
        return Response(answer_list(rows, request.query_params, _GROUPS, lambda row: group_resource(row.group)))


class OrganizationRoleMemberEndpoint(Endpoint):
    """The members that have one role in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_role_members",
            "List the members with a role in an organization",
            ("read:roles read:organization_members",),
            200,
            TAKEN_MEMBERS,
            parameters=TAKE_FORM,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
            snapshot_of="organization.member.role",
        )
    }

    def list(self, request: Request, id: str, role_id: str) -> Response:
        rows = OrganizationMemberRole.objects.filter(organization=organization_at(id), role=role_at(role_id)).select_related("user")
        listing = Listing("members", SHORT_USER_FIELDS, only_take=True)
        return Response(answer_list(rows, request.query_params, listing, lambda row: short_user(row.user)))
