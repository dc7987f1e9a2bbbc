"""The paths of this app below `/api/v2/`."""

from __future__ import annotations

from foundation.api.operations import Route
from identity.api.connection_users import ConnectionStatusEndpoint, ConnectionUserEndpoint
from identity.api.connections import ConnectionEndpoint
from identity.api.custom_domains import (
    CustomDomainEndpoint,
    DefaultDomainEndpoint,
    DomainTestEndpoint,
    DomainVerificationEndpoint,
)
from identity.api.enrollments import EnrollmentEndpoint
from identity.api.groups import GroupEndpoint, GroupMemberEndpoint, GroupRoleEndpoint
from identity.api.identities import IdentityEndpoint
from identity.api.jobs import JobEndpoint, JobErrorEndpoint, UsersExportEndpoint, UsersImportEndpoint, VerificationEmailEndpoint
from identity.api.messages.email_provider import EmailProviderEndpoint
from identity.api.messages.email_templates import EmailTemplateEndpoint
from identity.api.organizations.organization_connections import EnabledConnectionEndpoint, OrganizationConnectionEndpoint
from identity.api.organizations.organization_groups import (
    OrganizationGroupEndpoint,
    OrganizationGroupRoleEndpoint,
    OrganizationRoleGroupEndpoint,
    OrganizationRoleMemberEndpoint,
)
from identity.api.organizations.organization_members import (
    EffectiveMemberRoleEndpoint,
    EffectiveMemberRoleSourceEndpoint,
    MemberEndpoint,
    MemberRoleEndpoint,
)
from identity.api.organizations.organizations import OrganizationEndpoint, OrganizationNameEndpoint
from identity.api.role_assignments import RoleGroupEndpoint, RoleUserEndpoint, UserRoleEndpoint
from identity.api.roles import RoleEndpoint
from identity.api.user_memberships import EffectiveRoleEndpoint, EffectiveRoleSourceEndpoint, UserGroupEndpoint, UserOrganizationEndpoint
from identity.api.users import UserEndpoint, UsersByEmailEndpoint

_COLLECTION = {"get": "list", "post": "create"}
_ITEM = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
_LIST = {"get": "list"}
_RELATION = {"get": "list", "post": "create", "delete": "destroy"}
_ORGANIZATION = "organizations/<segment:id>"

ROUTES = (
    Route("jobs/users-imports", UsersImportEndpoint, {"post": "create"}),
    Route("jobs/users-exports", UsersExportEndpoint, {"post": "create"}),
    Route("jobs/verification-email", VerificationEmailEndpoint, {"post": "create"}),
    Route("jobs/<segment:id>", JobEndpoint, {"get": "retrieve"}),
    Route("jobs/<segment:id>/errors", JobErrorEndpoint, {"get": "list"}),
    Route("custom-domains", CustomDomainEndpoint, _COLLECTION),
    Route("custom-domains/default", DefaultDomainEndpoint, {"get": "list", "patch": "partial_update"}),
    Route("custom-domains/<segment:id>", CustomDomainEndpoint, _ITEM),
    Route("custom-domains/<segment:id>/verify", DomainVerificationEndpoint, {"post": "create"}),
    Route("custom-domains/<segment:id>/test", DomainTestEndpoint, {"post": "create"}),
    Route("emails/provider", EmailProviderEndpoint, {"get": "list", "post": "create", "patch": "partial_update", "delete": "destroy"}),
    Route("email-templates", EmailTemplateEndpoint, {"post": "create"}),
    Route(
        "email-templates/<segment:template_name>", EmailTemplateEndpoint, {"get": "retrieve", "put": "update", "patch": "partial_update"}
    ),
    Route("users", UserEndpoint, _COLLECTION),
    Route("users/<segment:id>", UserEndpoint, _ITEM),
    Route("users/<segment:id>/identities", IdentityEndpoint, {"post": "create"}),
    Route("users/<segment:id>/identities/<segment:provider>/<segment:user_id>", IdentityEndpoint, {"delete": "destroy"}),
    Route("users-by-email", UsersByEmailEndpoint, {"get": "list"}),
    Route("connections", ConnectionEndpoint, _COLLECTION),
    Route("connections/<segment:id>", ConnectionEndpoint, _ITEM),
    Route("connections/<segment:id>/status", ConnectionStatusEndpoint, _LIST),
    Route("connections/<segment:id>/users", ConnectionUserEndpoint, {"delete": "destroy"}),
    Route("users/<segment:id>/enrollments", EnrollmentEndpoint, _LIST),
    Route("users/<segment:id>/roles", UserRoleEndpoint, _RELATION),
    Route("users/<segment:id>/organizations", UserOrganizationEndpoint, _LIST),
    Route("users/<segment:id>/groups", UserGroupEndpoint, _LIST),
    Route("users/<segment:id>/effective-roles", EffectiveRoleEndpoint, _LIST),
    Route("users/<segment:id>/effective-roles/sources/groups", EffectiveRoleSourceEndpoint, _LIST),
    Route("roles", RoleEndpoint, _COLLECTION),
    Route("roles/<segment:id>", RoleEndpoint, _ITEM),
    Route("roles/<segment:id>/users", RoleUserEndpoint, _COLLECTION),
    Route("roles/<segment:id>/groups", RoleGroupEndpoint, _RELATION),
    Route("groups", GroupEndpoint, _COLLECTION),
    Route("groups/<segment:id>", GroupEndpoint, _ITEM),
    Route("groups/<segment:id>/members", GroupMemberEndpoint, _RELATION),
    Route("groups/<segment:id>/roles", GroupRoleEndpoint, _RELATION),
    Route("organizations", OrganizationEndpoint, _COLLECTION),
    Route("organizations/name/<segment:name>", OrganizationNameEndpoint, {"get": "retrieve"}),
    Route(_ORGANIZATION, OrganizationEndpoint, _ITEM),
    Route(f"{_ORGANIZATION}/members", MemberEndpoint, _RELATION),
    Route(f"{_ORGANIZATION}/members/<segment:user_id>/roles", MemberRoleEndpoint, _RELATION),
    Route(f"{_ORGANIZATION}/members/<segment:user_id>/effective-roles", EffectiveMemberRoleEndpoint, _LIST),
    Route(f"{_ORGANIZATION}/members/<segment:user_id>/effective-roles/sources/groups", EffectiveMemberRoleSourceEndpoint, _LIST),
    Route(f"{_ORGANIZATION}/enabled_connections", EnabledConnectionEndpoint, _COLLECTION),
    Route(f"{_ORGANIZATION}/enabled_connections/<segment:connection_id>", EnabledConnectionEndpoint, _ITEM),
    Route(f"{_ORGANIZATION}/connections", OrganizationConnectionEndpoint, _COLLECTION),
    Route(f"{_ORGANIZATION}/connections/<segment:connection_id>", OrganizationConnectionEndpoint, _ITEM),
    Route(f"{_ORGANIZATION}/groups", OrganizationGroupEndpoint, _LIST),
    Route(f"{_ORGANIZATION}/groups/<segment:group_id>/roles", OrganizationGroupRoleEndpoint, _RELATION),
    Route(f"{_ORGANIZATION}/roles/<segment:role_id>/groups", OrganizationRoleGroupEndpoint, _LIST),
    Route(f"{_ORGANIZATION}/roles/<segment:role_id>/members", OrganizationRoleMemberEndpoint, _LIST),
)
