"""Models of tenants, users and staff. Each module defines one kind of object."""

from identity.models.audit import AuditEntry
from identity.models.connections import Connection
from identity.models.groups import Group, GroupMember, GroupRole
from identity.models.jobs import Job, JobChunk, JobError, JobUser
from identity.models.messages import MessageProvider, MessageTemplate
from identity.models.moves import TenantMove
from identity.models.organizations import (
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
)
from identity.models.proofs import EmailTicket, EnrolledFactor
from identity.models.roles import Role, UserRole
from identity.models.staff import Staff
from identity.models.staff_factors import StaffFactor, StaffRecoveryCode
from identity.models.tenants import CustomDomain, FormerTenant, Tenant
from identity.models.users import FormerPassword, LinkedIdentity, PasswordCredential, User

__all__ = [
    "AuditEntry",
    "Connection",
    "CustomDomain",
    "EmailTicket",
    "EnrolledFactor",
    "FormerPassword",
    "FormerTenant",
    "Group",
    "GroupMember",
    "GroupRole",
    "Job",
    "JobChunk",
    "JobError",
    "JobUser",
    "LinkedIdentity",
    "MessageProvider",
    "MessageTemplate",
    "Organization",
    "OrganizationConnection",
    "OrganizationGroupRole",
    "OrganizationMember",
    "OrganizationMemberRole",
    "PasswordCredential",
    "Role",
    "Staff",
    "StaffFactor",
    "StaffRecoveryCode",
    "Tenant",
    "TenantMove",
    "User",
    "UserRole",
]
