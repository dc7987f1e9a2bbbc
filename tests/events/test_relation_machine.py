"""Random sequences of writes, as in `test_state_machine`, but also with organizations, groups, roles and relations."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from identity.models import (
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
)
from identity.models.base import TenantOwned
from identity.services import connections, deletions, groups, memberships, organizations, roles, users
from identity.services.failures import ServiceError
from identity.services.jobs import run_job
from tests.depth import sized
from tests.events.test_state_machine import INDEX, EveryWayToWrite

RELATIONS = (OrganizationMember, OrganizationMemberRole, OrganizationGroupRole, OrganizationConnection, GroupMember, GroupRole)
DELETIONS: dict[str, tuple[type[TenantOwned], deletions.Deletion]] = {
    "group": (Group, groups.GROUP_DELETION),
    "role": (Role, roles.ROLE_DELETION),
    "organization": (Organization, organizations.ORGANIZATION_DELETION),
}
NAMES = st.sampled_from(["alpha", "beta", "gamma"])


class EveryRelation(EveryWayToWrite):
    """Adds relations of organizations and groups, and cascades of users, roles and connections."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        for name in ("alpha", "beta"):
            users.create_user(tenant_id=self.tenant, connection=self.connection, name=name)
            organizations.create_organization(tenant_id=self.tenant, name=name)
            groups.create_group(tenant_id=self.tenant, name=name)
            roles.create_role(tenant_id=self.tenant, name=name)

    def any_of(self, model: type[TenantOwned], index: int) -> str | None:
        keys = list(model.objects.of(self.tenant).order_by("pk").values_list("pk", flat=True))
        return keys[index % len(keys)] if keys else None

    @rule(name=NAMES)
    def create_organization(self, name: str) -> None:
        with contextlib.suppress(ServiceError):
            organizations.create_organization(tenant_id=self.tenant, name=name, display_name=name.title())

    @rule(index=INDEX, name=NAMES)
    def rename_organization(self, index: int, name: str) -> None:
        if key := self.any_of(Organization, index):
            with contextlib.suppress(ServiceError):
                organizations.update_organization(tenant_id=self.tenant, organization_id=key, changes={"name": name})

    @rule(index=INDEX)
    def delete_organization(self, index: int) -> None:
        if key := self.any_of(Organization, index):
            organizations.delete_organization(tenant_id=self.tenant, organization_id=key)

    @rule(index=INDEX, owner=st.sampled_from(["tenant", "organization", "connection"]), name=NAMES)
    def create_group(self, index: int, owner: str, name: str) -> None:
        organization = self.any_of(Organization, index) if owner == "organization" else None
        connection_id = self.connection.pk if owner == "connection" else None
        with contextlib.suppress(ServiceError):
            groups.create_group(tenant_id=self.tenant, name=name, type=owner, organization_id=organization, connection_id=connection_id)

    @rule(index=INDEX)
    def delete_group(self, index: int) -> None:
        if key := self.any_of(Group, index):
            groups.delete_group(tenant_id=self.tenant, group_id=key)

    @rule(name=NAMES)
    def create_role(self, name: str) -> None:
        with contextlib.suppress(ServiceError):
            roles.create_role(tenant_id=self.tenant, name=name)

    @rule(index=INDEX)
    def delete_role(self, index: int) -> None:
        if key := self.any_of(Role, index):
            roles.delete_role(tenant_id=self.tenant, role_id=key)

    @rule(first=INDEX, second=INDEX, third=INDEX)
    def relate(self, first: int, second: int, third: int) -> None:
        organization, group, role = self.any_of(Organization, first), self.any_of(Group, second), self.any_of(Role, third)
        user = self.pick(third)
        if not (organization and group and role and user):
            return
        named = {"tenant_id": self.tenant, "organization_id": organization}
        memberships.add_members(**named, user_ids=[user.user_id])
        memberships.assign_member_roles(**named, user_id=user.user_id, role_ids=[role])
        memberships.assign_organization_group_roles(**named, group_id=group, role_ids=[role])
        groups.add_group_members(tenant_id=self.tenant, group_id=group, user_ids=[user.user_id])
        groups.assign_group_roles(tenant_id=self.tenant, group_id=group, role_ids=[role])
        with contextlib.suppress(ServiceError):
            memberships.add_connection(**named, connection_id=self.connection.pk)

    @rule(first=INDEX, second=INDEX)
    def nest(self, first: int, second: int) -> None:
        outer, inner = self.any_of(Group, first), self.any_of(Group, second)
        if outer and inner:
            with contextlib.suppress(ServiceError):
                groups.add_group_members(tenant_id=self.tenant, group_id=outer, nested_ids=[inner])

    @rule(index=INDEX, flag=st.booleans())
    def change_organization_connection(self, index: int, flag: bool) -> None:
        if key := self.any_of(Organization, index):
            with contextlib.suppress(ServiceError):
                memberships.update_organization_connection(
                    tenant_id=self.tenant,
                    organization_id=key,
                    connection_id=self.connection.pk,
                    changes={"assign_membership_on_login": flag, "is_signup_enabled": flag},
                )

    @rule(index=INDEX, model=st.sampled_from(RELATIONS))
    def delete_relation_row(self, index: int, model: type[TenantOwned]) -> None:
        if key := self.any_of(model, index):
            model.objects.of(self.tenant).get(pk=key).delete()

    @rule(index=INDEX, model=st.sampled_from(RELATIONS))
    def raw_delete_of_relations(self, index: int, model: type[TenantOwned]) -> None:
        if (key := self.any_of(model, index)) and model is not OrganizationMember:
            self.sql(f"DELETE FROM {model._meta.db_table} WHERE id = %s", key)  # noqa: S608  (a table of our own)

    @rule(index=INDEX)
    def raw_delete(self, index: int) -> None:
        if user := self.pick(index):
            for table in ("organizationmemberrole", "organizationmember", "groupmember", "linkedidentity"):
                self.sql(f"DELETE FROM identity_{table} WHERE user_id = %s", user.pk)  # noqa: S608  (a table of our own)
            self.sql("DELETE FROM identity_user WHERE id = %s", user.pk)

    @rule(chunk=st.integers(1, 4), index=INDEX, kind=st.sampled_from(sorted(DELETIONS)))
    def delete_in_chunks(self, chunk: int, index: int, kind: str) -> None:
        """Start one deletion as a job, and delete another row before the job runs its chunks."""
        model, other = DELETIONS[kind]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deletions, "CHUNK_ROWS", chunk)
            job = connections.delete_connection(tenant_id=self.tenant, connection_id=self.connection.pk)
            if key := self.any_of(model, index):
                self.finish(other, key)
            if job is not None:
                run_job(job.pk)
        self.connection = connections.create_connection(tenant_id=self.tenant, name="people", strategy="database")

    def finish(self, deletion: deletions.Deletion, key: str) -> None:
        job = deletion.start(tenant_id=self.tenant, key=key)
        if job is not None:
            run_job(job.pk)

    @rule()
    def delete_connection(self) -> None:
        connections.delete_connection(tenant_id=self.tenant, connection_id=self.connection.pk)
        self.connection = connections.create_connection(tenant_id=self.tenant, name="people", strategy="database")


@pytest.mark.sized
@pytest.mark.timeout(600)
def test_events_applied_in_order_give_the_contents_of_the_tables_of_relations(committed_db: None) -> None:
    run_state_machine_as_test(
        EveryRelation,
        settings=settings(max_examples=sized(4, deep=16), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)),
    )
