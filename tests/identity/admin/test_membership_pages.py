"""Groups, roles and organizations in the admin. Each change calls a function of the services, and this function records an event."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import models
from django.test import Client
from django.urls import reverse

from events.models import Event
from identity.admin.deletions import SINGULAR
from identity.models import (
    Connection,
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
    Tenant,
    User,
    UserRole,
)
from identity.services import deletions
from identity.services.memberships import add_members, assign_member_roles
from identity.services.tenant_deletion import what_hangs_on_tenant
from tests.factories.identity import make_user
from tests.factories.models.identity import GroupFactory, OrganizationFactory, RoleFactory


@pytest.fixture
def user(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test")


@pytest.fixture
def group(tenant: Tenant) -> Group:
    return GroupFactory.create(tenant_id=tenant.pk, name="Engineers")


@pytest.fixture
def role(tenant: Tenant) -> Role:
    return RoleFactory.create(tenant_id=tenant.pk, name="Reader")


@pytest.fixture
def organization(tenant: Tenant) -> Organization:
    return OrganizationFactory.create(tenant_id=tenant.pk, name="acme")


def place(model: type[models.Model], name: str, *key: object) -> str:
    return reverse(f"admin:identity_{model._meta.model_name}_{name}", args=key)


def types_of(tenant: Tenant, prefix: str) -> list[str]:
    found = Event.objects.filter(tenant_id=tenant.pk, type__startswith=prefix).order_by("pk")
    return list(found.values_list("type", flat=True))


def test_a_group_is_created_changed_and_deleted(browser: Client, tenant: Tenant) -> None:
    browser.post(place(Group, "add"), {"name": "Engineers", "type": "tenant"})
    group = Group.objects.of(tenant.pk).get()
    browser.post(place(Group, "change", group.pk), {"name": "Builders"})
    browser.post(place(Group, "delete", group.pk), {"post": "yes"})

    assert types_of(tenant, "group.") == ["group.created", "group.updated", "group.deleted"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [({"name": "Taken", "type": "tenant"}, "already exists"), ({"name": "New", "type": "connection"}, "needs connection_id")],
)
def test_an_invalid_group_is_reported_on_the_form(browser: Client, tenant: Tenant, sent: dict[str, str], said: str) -> None:
    GroupFactory.create(tenant_id=tenant.pk, name="Taken")

    assert said in browser.post(place(Group, "add"), sent).content.decode()


def test_a_member_or_a_role_is_added_to_a_group_and_removed(browser: Client, tenant: Tenant, group: Group, user: User, role: Role) -> None:
    browser.post(place(GroupMember, "add"), {"group": group.pk, "user": user.pk})
    browser.post(place(GroupRole, "add"), {"group": group.pk, "role": role.pk})
    member, given = GroupMember.objects.of(tenant.pk).get(), GroupRole.objects.of(tenant.pk).get()
    confirmed = {ACTION_CHECKBOX_NAME: [member.pk], "confirmed": "yes", "shown": "1"}
    browser.post(place(GroupMember, "changelist"), {"action": "delete_selected", **confirmed})
    browser.post(place(GroupRole, "delete", given.pk), {"post": "yes"})

    assert types_of(tenant, "group.")[1:] == ["group.member.added", "group.role.assigned", "group.member.deleted", "group.role.deleted"]


def test_a_membership_without_a_member_is_reported_on_the_form(browser: Client, group: Group) -> None:
    answer = browser.post(place(GroupMember, "add"), {"group": group.pk})

    assert "Choose either a user or a nested group" in answer.content.decode()
    assert not GroupMember.objects.of(group.tenant_id).exists()


def test_a_role_of_the_tenant_is_assigned_to_a_user(browser: Client, tenant: Tenant, user: User) -> None:
    browser.post(place(Role, "add"), {"name": "Reader", "type": "tenant"})
    role = Role.objects.of(tenant.pk).get()
    browser.post(place(UserRole, "add"), {"user": user.pk, "role": role.pk})
    given = UserRole.objects.of(tenant.pk).get()
    browser.post(place(UserRole, "delete", given.pk), {"post": "yes"})

    assert not UserRole.objects.of(tenant.pk).exists()


def test_members_roles_and_connections_are_added_to_an_organization(
    browser: Client, tenant: Tenant, user: User, group: Group, role: Role, database_connection: Connection
) -> None:
    browser.post(place(Organization, "add"), {"name": "acme", "display_name": "Acme"})
    acme = Organization.objects.of(tenant.pk).get()
    browser.post(place(OrganizationMember, "add"), {"organization": acme.pk, "user": user.pk})
    browser.post(place(OrganizationMemberRole, "add"), {"organization": acme.pk, "user": user.pk, "role": role.pk})
    browser.post(place(OrganizationGroupRole, "add"), {"organization": acme.pk, "group": group.pk, "role": role.pk})
    browser.post(place(OrganizationConnection, "add"), {"organization": acme.pk, "connection": database_connection.pk, "is_enabled": "on"})
    row = OrganizationConnection.objects.of(tenant.pk).get()
    browser.post(place(OrganizationConnection, "change", row.pk), {"show_as_button": "on", "is_enabled": "on"})

    assert types_of(tenant, "organization.") == [
        "organization.created",
        "organization.member.added",
        "organization.member.role.assigned",
        "organization.group.role.assigned",
        "organization.connection.added",
        "organization.connection.updated",
    ]
    for model in (OrganizationMemberRole, OrganizationGroupRole, OrganizationMember, OrganizationConnection):
        browser.post(place(model, "delete", model._default_manager.get(tenant_id=tenant.pk).pk), {"post": "yes"})
    assert types_of(tenant, "organization.")[6:] == [
        "organization.member.role.deleted",
        "organization.group.role.deleted",
        "organization.member.deleted",
        "organization.connection.removed",
    ]


def test_a_role_for_a_user_without_a_membership_is_refused_on_the_form(
    browser: Client, organization: Organization, user: User, role: Role
) -> None:
    sent = {"organization": organization.pk, "user": user.pk, "role": role.pk}

    assert "not a member" in browser.post(place(OrganizationMemberRole, "add"), sent).content.decode()


def test_adding_an_existing_member_changes_nothing(browser: Client, organization: Organization, user: User) -> None:
    add_members(tenant_id=user.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])

    assert browser.post(place(OrganizationMember, "add"), {"organization": organization.pk, "user": user.pk}).status_code == 302
    assert OrganizationMember.objects.of(user.tenant_id).count() == 1


def test_a_membership_cannot_be_changed(browser: Client, group: Group, user: User) -> None:
    browser.post(place(GroupMember, "add"), {"group": group.pk, "user": user.pk})
    row = GroupMember.objects.of(group.tenant_id).get()

    assert browser.post(place(GroupMember, "change", row.pk), {"group": group.pk, "user": ""}).status_code == 403


def test_the_deletion_page_names_a_single_row_in_the_singular(
    browser: Client, tenant: Tenant, organization: Organization, role: Role, user: User
) -> None:
    other = make_user(connection=user.connection, email="grace@example.test")
    here = {"tenant_id": tenant.pk, "organization_id": organization.pk}
    add_members(**here, user_ids=[user.user_id, other.user_id])
    assign_member_roles(**here, user_id=user.user_id, role_ids=[role.pk])

    content = browser.get(place(Organization, "delete", organization.pk)).content.decode()
    assert re.findall(r"<li>(\d.*?)</li>", content) == ["2 members", "1 role of a member"]


def test_every_kind_of_row_on_deletion_pages_has_a_name_in_the_singular(
    database_connection: Connection, group: Group, role: Role, organization: Organization
) -> None:
    counted = [deletions._deletions[type(row)].count(row) for row in (database_connection, group, role, organization)]
    assert {kind for counts in counted for kind in counts} | set(what_hangs_on_tenant(group.tenant_id)) == set(SINGULAR)
