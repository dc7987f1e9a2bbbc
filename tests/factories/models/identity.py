"""Factories of tenants, staff, users and their rows. They call the service function that creates such a row, if one exists. Otherwise
they save the row."""

from __future__ import annotations

import secrets
from typing import Any
from uuid import uuid4

from django.conf import settings
from factory.base import Factory
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence, SubFactory

from identity.models import (
    AuditEntry,
    Connection,
    CustomDomain,
    EmailTicket,
    EnrolledFactor,
    FormerPassword,
    FormerTenant,
    Group,
    GroupMember,
    GroupRole,
    Job,
    JobChunk,
    JobError,
    JobUser,
    LinkedIdentity,
    MessageProvider,
    MessageTemplate,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    PasswordCredential,
    Role,
    Staff,
    StaffFactor,
    StaffRecoveryCode,
    Tenant,
    TenantMove,
    User,
    UserRole,
)
from identity.services.connections import create_connection
from identity.services.groups import create_group
from identity.services.organizations import create_organization
from identity.services.roles import create_role
from identity.services.staff import create_staff
from identity.services.tenants import create_tenant
from identity.services.users import create_user
from tests.factories.models.row_factory import RowFactory, from_now, own_number, own_text, same, tenant_of

STAFF_PASSWORD = "quite-a-long-password-1"


class TenantFactory(Factory[Tenant]):
    """A tenant `<prefix>-<random>` with the host `<id>.example.test` and an empty log."""

    class Meta:
        model = Tenant

    class Params:
        prefix = "t"

    id = LazyAttribute(lambda row: f"{row.prefix}-{secrets.token_hex(6)}")
    name = SelfAttribute("id")
    host = LazyAttribute(lambda row: f"{row.id}.example.test")

    @classmethod
    def _create(cls, model_class: type[Tenant], *args: Any, **fields: Any) -> Tenant:
        return create_tenant(tenant_id=fields.pop("id"), **fields)


class FormerTenantFactory(RowFactory[FormerTenant]):
    class Meta:
        model = FormerTenant

    id = LazyFunction(lambda: f"former-{secrets.token_hex(6)}")


class CustomDomainFactory(RowFactory[CustomDomain]):
    class Meta:
        model = CustomDomain

    host = own_text()


class StaffFactory(Factory[Staff]):
    """An administrator of the tenant, or of the platform if no tenant is named."""

    class Meta:
        model = Staff

    tenant_id = None
    email = LazyFunction(lambda: f"staff-{secrets.token_hex(4)}@example.test")
    password = STAFF_PASSWORD

    @classmethod
    def _create(cls, model_class: type[Staff], *args: Any, **fields: Any) -> Staff:
        return create_staff(**fields)


class StaffFactorFactory(RowFactory[StaffFactor]):
    """An authenticator app whose secret matches no code. `tests.factories.staff_factors` has apps with valid codes."""

    class Meta:
        model = StaffFactor

    staff = SubFactory(StaffFactory)
    kind = StaffFactor.Kind.TOTP
    name = "App"
    sealed_secret = "sealed"


class StaffRecoveryCodeFactory(RowFactory[StaffRecoveryCode]):
    class Meta:
        model = StaffRecoveryCode

    staff = SubFactory(StaffFactory)
    digest = LazyFunction(lambda: secrets.token_hex(16))


class AuditEntryFactory(RowFactory[AuditEntry]):
    class Meta:
        model = AuditEntry

    act_id = LazyFunction(uuid4)
    kind = AuditEntry.Kind.ADD
    actor_kind = "staff"
    actor_name = own_text()


class ConnectionFactory(Factory[Connection]):
    """A database connection."""

    class Meta:
        model = Connection

    name = Sequence(lambda number: f"connection-{number}")
    strategy = LazyFunction(lambda: settings.DATABASE_STRATEGY)

    @classmethod
    def _create(cls, model_class: type[Connection], *args: Any, **fields: Any) -> Connection:
        return create_connection(**fields)


class UserFactory(Factory[User]):
    """A user with an email address and no password."""

    class Meta:
        model = User

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    email = Sequence(lambda number: f"user-{number}@example.test")

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **fields: Any) -> User:
        return create_user(**fields)


class LinkedIdentityFactory(RowFactory[LinkedIdentity]):
    class Meta:
        model = LinkedIdentity

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    connection = SelfAttribute("user.connection")
    provider = SelfAttribute("user.provider")
    identifier = own_text()


class PasswordCredentialFactory(RowFactory[PasswordCredential]):
    """A hash that matches no password. Users that are created with a password have a valid hash."""

    class Meta:
        model = PasswordCredential

    user = SubFactory(UserFactory)
    password_hash = "!"


class FormerPasswordFactory(RowFactory[FormerPassword]):
    class Meta:
        model = FormerPassword

    user = SubFactory(UserFactory)
    password_hash = "!"


class EnrolledFactorFactory(RowFactory[EnrolledFactor]):
    class Meta:
        model = EnrolledFactor

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    kind = EnrolledFactor.Kind.PHONE


class EmailTicketFactory(RowFactory[EmailTicket]):
    class Meta:
        model = EmailTicket

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    email = SelfAttribute("user.email")
    expires_at = from_now(days=1)


class MessageProviderFactory(RowFactory[MessageProvider]):
    """A mail server of the tenant at an unreachable address."""

    class Meta:
        model = MessageProvider

    channel = "email"
    name = MessageProvider.Name.SMTP
    default_from = LazyAttribute(lambda row: f"mail@{row.tenant_id}.example.test")
    settings = LazyFunction(lambda: {"smtp_host": "127.0.0.1", "smtp_port": 9, "smtp_user": ""})


class MessageTemplateFactory(RowFactory[MessageTemplate]):
    class Meta:
        model = MessageTemplate

    name = "verify_email"
    subject = own_text()
    body = LazyAttribute(lambda row: f"<p>{row.subject}</p>")


class RoleFactory(Factory[Role]):
    """A role of the tenant."""

    class Meta:
        model = Role

    name = Sequence(lambda number: f"role-{number}")

    @classmethod
    def _create(cls, model_class: type[Role], *args: Any, **fields: Any) -> Role:
        return create_role(**fields)


class UserRoleFactory(RowFactory[UserRole]):
    class Meta:
        model = UserRole

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    role = SubFactory(RoleFactory, tenant_id=same())


class OrganizationFactory(Factory[Organization]):
    class Meta:
        model = Organization

    name = Sequence(lambda number: f"organization-{number}")

    @classmethod
    def _create(cls, model_class: type[Organization], *args: Any, **fields: Any) -> Organization:
        return create_organization(**fields)


class GroupFactory(Factory[Group]):
    """A group of the whole tenant."""

    class Meta:
        model = Group

    name = Sequence(lambda number: f"group-{number}")

    @classmethod
    def _create(cls, model_class: type[Group], *args: Any, **fields: Any) -> Group:
        return create_group(**fields)


class GroupMemberFactory(RowFactory[GroupMember]):
    class Meta:
        model = GroupMember

    tenant_id = tenant_of("group")
    group = SubFactory(GroupFactory, tenant_id=same())
    user = SubFactory(UserFactory, tenant_id=same())


class GroupRoleFactory(RowFactory[GroupRole]):
    class Meta:
        model = GroupRole

    tenant_id = tenant_of("group")
    group = SubFactory(GroupFactory, tenant_id=same())
    role = SubFactory(RoleFactory, tenant_id=same())


class OrganizationConnectionFactory(RowFactory[OrganizationConnection]):
    class Meta:
        model = OrganizationConnection

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    connection = SubFactory(ConnectionFactory, tenant_id=same())


class OrganizationMemberFactory(RowFactory[OrganizationMember]):
    class Meta:
        model = OrganizationMember

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    user = SubFactory(UserFactory, tenant_id=same())


class OrganizationMemberRoleFactory(RowFactory[OrganizationMemberRole]):
    class Meta:
        model = OrganizationMemberRole

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    member = SubFactory(OrganizationMemberFactory, organization=same("organization"))
    user = SelfAttribute("member.user")
    role = SubFactory(RoleFactory, tenant_id=same())


class OrganizationGroupRoleFactory(RowFactory[OrganizationGroupRole]):
    class Meta:
        model = OrganizationGroupRole

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    group = SubFactory(GroupFactory, tenant_id=same())
    role = SubFactory(RoleFactory, tenant_id=same())


class JobFactory(RowFactory[Job]):
    """An import of users that waits for a worker."""

    class Meta:
        model = Job

    type = Job.Type.USERS_IMPORT


class TenantMoveFactory(RowFactory[TenantMove]):
    class Meta:
        model = TenantMove

    direction = TenantMove.Direction.OUT
    earlier_status = Tenant.Status.ACTIVE


class JobChunkFactory(RowFactory[JobChunk]):
    class Meta:
        model = JobChunk

    job = SubFactory(JobFactory)
    number = 0


class JobErrorFactory(RowFactory[JobError]):
    class Meta:
        model = JobError

    job = SubFactory(JobFactory)
    row_number = 0
    user = LazyFunction(dict)
    errors = LazyFunction(list)


class JobUserFactory(RowFactory[JobUser]):
    class Meta:
        model = JobUser

    job = SubFactory(JobFactory)
    user_key = own_number()
