"""Admin pages of tenants, users and related rows. `register` adds them to a site. `tenant_scope` has the base of every admin class."""

from __future__ import annotations

from identity.admin.audit_log import AuditEntryAdmin
from identity.admin.connections import ConnectionAdmin
from identity.admin.factors import EnrolledFactorAdmin
from identity.admin.groups import GroupAdmin, GroupMemberAdmin, GroupRoleAdmin
from identity.admin.jobs import JobAdmin, JobChunkAdmin, JobErrorAdmin
from identity.admin.messages.sender_pages import SendersPage
from identity.admin.messages.template_pages import MessagesPage
from identity.admin.organizations import (
    OrganizationAdmin,
    OrganizationConnectionAdmin,
    OrganizationGroupRoleAdmin,
    OrganizationMemberAdmin,
    OrganizationMemberRoleAdmin,
)
from identity.admin.roles import RoleAdmin, UserRoleAdmin
from identity.admin.staff import StaffAdmin
from identity.admin.tenant_page import PagesSite
from identity.admin.tenants import CustomDomainAdmin, FormerTenantAdmin, TenantAdmin
from identity.admin.users import LinkedIdentityAdmin, PasswordCredentialAdmin, UserAdmin
from identity.models import (
    AuditEntry,
    Connection,
    CustomDomain,
    EnrolledFactor,
    FormerTenant,
    Group,
    GroupMember,
    GroupRole,
    Job,
    JobChunk,
    JobError,
    LinkedIdentity,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    PasswordCredential,
    Role,
    Staff,
    Tenant,
    User,
    UserRole,
)


def register(site: PagesSite) -> None:
    """Register every model of this app, and the audit log, with `site`."""
    site.register(User, UserAdmin)
    site.register(LinkedIdentity, LinkedIdentityAdmin)
    _register_proofs(site)
    site.register(Connection, ConnectionAdmin)
    site.register(Group, GroupAdmin)
    site.register(GroupMember, GroupMemberAdmin)
    site.register(GroupRole, GroupRoleAdmin)
    site.register(Organization, OrganizationAdmin)
    site.register(OrganizationConnection, OrganizationConnectionAdmin)
    site.register(OrganizationMember, OrganizationMemberAdmin)
    site.register(OrganizationMemberRole, OrganizationMemberRoleAdmin)
    site.register(OrganizationGroupRole, OrganizationGroupRoleAdmin)
    site.register(Role, RoleAdmin)
    site.register(UserRole, UserRoleAdmin)
    site.register(Job, JobAdmin)
    site.register(JobChunk, JobChunkAdmin)
    site.register(JobError, JobErrorAdmin)
    site.register(Tenant, TenantAdmin)
    site.register(FormerTenant, FormerTenantAdmin)
    site.register(CustomDomain, CustomDomainAdmin)
    site.register(Staff, StaffAdmin)
    site.register(AuditEntry, AuditEntryAdmin)
    site.register_page(MessagesPage)
    site.register_page(SendersPage)


def _register_proofs(site: PagesSite) -> None:
    site.register(PasswordCredential, PasswordCredentialAdmin)
    site.register(EnrolledFactor, EnrolledFactorAdmin)
