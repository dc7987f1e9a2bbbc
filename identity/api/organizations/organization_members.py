"""Members of an organization and their roles in it: `/organizations/{id}/members` and below."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM
from foundation.api.operations import Lifecycle, Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import invalid_query
from identity.api.group_schemas import GROUP_FIELDS, TAKEN_GROUPS
from identity.api.lookups import organization_at, role_at, short_user, user_at
from identity.api.organizations.organization_schemas import MEMBER_FIELDS, MEMBERS
from identity.api.relation_bodies import OrganizationMembersToChange, RolesToChange
from identity.api.role_schemas import EFFECTIVE_ROLE_FIELDS, EFFECTIVE_ROLES, ROLE_FIELDS, ROLE_ID, ROLES
from identity.documents.group import group_resource
from identity.documents.role import effective_role_document, role_document
from identity.models import OrganizationMember, OrganizationMemberRole, Role
from identity.services import memberships
from identity.services.effective_roles import effective_member_roles, groups_with_member_role

_EFFECTIVE = Listing("roles", EFFECTIVE_ROLE_FIELDS, only_take=True)


class MemberEndpoint(Endpoint):
    """The members of an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_members",
            "List the members of an organization",
            ("read:organization_members",),
            200,
            MEMBERS,
            parameters=LIST_FORMS,
            refuses=(404,),
            snapshot_of="organization.member",
        ),
        "create": Operation(
            "add_organization_members",
            "Add users to an organization",
            ("create:organization_members",),
            204,
            body=OrganizationMembersToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "remove_organization_members",
            "Remove members and their roles from an organization",
            ("delete:organization_members",),
            204,
            body=OrganizationMembersToChange,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, MEMBER_FIELDS)
        rows = OrganizationMember.objects.filter(organization=organization_at(id)).select_related("user")
        has_roles = project.wants("roles")
        if has_roles:
            self.require_scope(request, "read:organization_member_roles")
            rows = rows.prefetch_related("roles__role")

        def render(member: OrganizationMember) -> dict[str, Any]:
            found = {"roles": [{"id": row.role_id, "name": row.role.name} for row in member.roles.all()]} if has_roles else {}
            return {**short_user(member.user), **found}

        return Response(answer_list(rows, request.query_params, Listing("members", MEMBER_FIELDS), render))

    def create(self, request: Request, id: str) -> Response:
        members = self.body_of(request, OrganizationMembersToChange)["members"]
        memberships.add_members(tenant_id=self.tenant_id, organization_id=id, user_ids=members)
        return Response(status=204)

    def destroy(self, request: Request, id: str) -> Response:
        members = self.body_of(request, OrganizationMembersToChange)["members"]
        memberships.remove_members(tenant_id=self.tenant_id, organization_id=id, user_ids=members)
        return Response(status=204)


class MemberRoleEndpoint(Endpoint):
    """The roles that a member has in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_member_roles",
            "List the roles of a member",
            ("read:organization_member_roles",),
            200,
            ROLES,
            parameters=LIST_FORMS,
            refuses=(404,),
            snapshot_of="organization.member.role",
        ),
        "create": Operation(
            "assign_organization_member_roles",
            "Assign roles to a member in an organization",
            ("create:organization_member_roles",),
            204,
            body=RolesToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation(
            "remove_organization_member_roles",
            "Remove roles from a member",
            ("delete:organization_member_roles",),
            204,
            body=RolesToChange,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str, user_id: str) -> Response:
        organization, user = organization_at(id), user_at(user_id)
        rows = OrganizationMemberRole.objects.filter(organization=organization, user=user).select_related("role")
        return Response(answer_list(rows, request.query_params, Listing("roles", ROLE_FIELDS), lambda row: role_document(row.role)))

    def create(self, request: Request, id: str, user_id: str) -> Response:
        organization, user = organization_at(id), user_at(user_id)
        named = self.body_of(request, RolesToChange)["roles"]
        memberships.assign_member_roles(tenant_id=self.tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=named)
        return Response(status=204)

    def destroy(self, request: Request, id: str, user_id: str) -> Response:
        organization, user = organization_at(id), user_at(user_id)
        named = self.body_of(request, RolesToChange)["roles"]
        memberships.remove_member_roles(tenant_id=self.tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=named)
        return Response(status=204)


class EffectiveMemberRoleEndpoint(Endpoint):
    """The effective roles of a user in an organization: assigned directly or through groups."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_member_effective_roles",
            "List the effective roles of a member",
            ("read:organization_member_effective_roles",),
            200,
            EFFECTIVE_ROLES,
            parameters=TAKE_FORM,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        )
    }

    def list(self, request: Request, id: str, user_id: str) -> Response:
        organization, user = organization_at(id), user_at(user_id)
        effective = effective_member_roles(user, organization.pk)

        def render(role: Role) -> dict[str, Any]:
            return effective_role_document(role, effective.sources_of(role.pk))

        return Response(answer_list(effective.rows(self.tenant_id), request.query_params, _EFFECTIVE, render))


class EffectiveMemberRoleSourceEndpoint(Endpoint):
    """The groups through which a user has a role in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_member_role_source_groups",
            "List the groups through which a member has a role",
            ("read:organization_member_role_source_groups",),
            200,
            TAKEN_GROUPS,
            parameters=ROLE_ID,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        )
    }

    def list(self, request: Request, id: str, user_id: str) -> Response:
        organization, user = organization_at(id), user_at(user_id)
        role_id = text_of(request.query_params, "role_id")
        if role_id is None:
            raise invalid_query("Missing required property", "role_id")
        rows = groups_with_member_role(user, organization.pk, role_at(role_id).pk)
        return Response(answer_list(rows, request.query_params, Listing("groups", GROUP_FIELDS, only_take=True), group_resource))
