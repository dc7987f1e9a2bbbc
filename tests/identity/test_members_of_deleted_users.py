"""A membership or a role is added to a user while another transaction deletes the user.

The transaction that begins first completes. An addition that waits for the deletion then reports that the user is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from identity.models import Connection, GroupMember, OrganizationMember, OrganizationMemberRole, Tenant, User, UserRole
from identity.services.failures import NotFound
from identity.services.groups import add_group_members
from identity.services.memberships import add_members, assign_member_roles
from identity.services.roles import assign_role_to_users
from identity.services.users import delete_user
from tests.deadlines import eventually
from tests.events.log_reading import folded, numbered, tables
from tests.factories.identity import make_user
from tests.factories.models.identity import GroupFactory
from tests.factories.organizations import make_organization, make_role


def into_group(user: User) -> Callable[[], None]:
    group = GroupFactory.create(tenant_id=user.tenant_id)
    return lambda: add_group_members(tenant_id=user.tenant_id, group_id=group.pk, user_ids=[user.user_id])


def into_organization(user: User) -> Callable[[], None]:
    organization = make_organization(user.tenant, "acme")
    return lambda: add_members(tenant_id=user.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])


def with_role(user: User) -> Callable[[], None]:
    organization, role = make_organization(user.tenant, "acme"), make_role(user.tenant)
    named = {"tenant_id": user.tenant_id, "organization_id": organization.pk}
    add_members(**named, user_ids=[user.user_id])
    return lambda: assign_member_roles(**named, user_id=user.user_id, role_ids=[role.pk])


def with_role_in_the_tenant(user: User) -> Callable[[], None]:
    role = make_role(user.tenant)
    return lambda: assign_role_to_users(tenant_id=user.tenant_id, role_id=role.pk, user_ids=[user.user_id])


class Rival:
    """A call in its own thread with its own database connection. The errors of the call are stored in `errors`."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.errors: list[type[Exception]] = []
        self._act, self._pid = act, 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self._pid = cursor.fetchone()[0]
            self._act()
        except Exception as error:
            self.errors.append(type(error))
        finally:
            connection.close()

    def start(self) -> None:
        """Start the call, and return when it has ended or waits for a lock of another transaction."""
        self._thread.start()
        eventually(lambda: not self._thread.is_alive() or self._waits())

    def end(self) -> None:
        self._thread.join()

    def _waits(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [self._pid])
            return bool(cursor.fetchone()[0])


RELATIONS = [into_group, into_organization, with_role, with_role_in_the_tenant]


def assert_no_relation(tenant: Tenant) -> None:
    for model in (GroupMember, OrganizationMember, OrganizationMemberRole, UserRole):
        assert not model.objects.of(tenant.pk).exists()
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


@pytest.mark.parametrize("relation", RELATIONS)
def test_adding_a_relation_during_the_deletion_of_its_user_reports_an_unknown_user(
    tenant: Tenant, database_connection: Connection, relation: Callable[[User], Callable[[], None]]
) -> None:
    user = make_user(connection=database_connection, email="ada@example.test")
    rival = Rival(relation(user))
    with transaction.atomic():
        delete_user(tenant_id=tenant.pk, user_id=user.user_id)
        rival.start()
    rival.end()
    assert rival.errors == [NotFound]
    assert_no_relation(tenant)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_deletion_waits_for_a_relation_that_is_being_added(
    tenant: Tenant, database_connection: Connection, relation: Callable[[User], Callable[[], None]]
) -> None:
    user = make_user(connection=database_connection, email="ada@example.test")
    add, rival = relation(user), Rival(lambda: delete_user(tenant_id=tenant.pk, user_id=user.user_id))
    begun: list[str] = []

    def delete_meanwhile(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        found = execute(sql, *rest)
        if not begun and sql.startswith("SELECT") and "identity_user" in sql and user.user_id in str(rest[0]):
            begun.append(sql)
            rival.start()
        return found

    with connection.execute_wrapper(delete_meanwhile):
        add()
    rival.end()
    assert (len(begun), rival.errors) == (1, [])
    assert_no_relation(tenant)
