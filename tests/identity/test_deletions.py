"""Deletions that take several transactions: their order, and the writes that are refused until a deletion ends.

The stream matches the tables after every transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest
from django.db import connections as database_connections

from identity.imports import imports
from identity.models import Connection, Group, GroupMember, Job, Organization, OrganizationMember, Tenant, User, UserRole
from identity.services import connections, deletions, groups, memberships, organizations, roles, users
from identity.services.deletions import deletion_job, percentage, what_hangs_on
from identity.services.failures import BeingDeleted, NotFound
from identity.services.jobs import run_job, run_next_chunk
from tests.depth import sized
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Management


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "CHUNK_ROWS", 3)


@pytest.fixture
def people(tenant: Tenant) -> Connection:
    return make_connection(tenant_id=tenant.pk, name="people")


def _members(tenant: Tenant, people: Connection, count: int) -> list[User]:
    """Create `count` users. Each user is a member of an organization, has a role in the organization, and is a member of a group."""
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    organization, group, role = make_organization(tenant, "acme"), make_group(tenant, "engineers"), make_role(tenant, "editor")
    made = [make_user(connection=people) for _ in range(count)]
    ids = [user.user_id for user in made]
    memberships.add_members(**here, organization_id=organization.pk, user_ids=ids)
    for user_id in ids:
        memberships.assign_member_roles(**here, organization_id=organization.pk, user_id=user_id, role_ids=[role.pk])
    groups.add_group_members(**here, group_id=group.pk, user_ids=ids)
    return made


def started(job: Job | None) -> Job:
    assert job is not None
    return job


@pytest.mark.usefixtures("small_chunks")
def test_the_stream_matches_the_tables_after_each_chunk_of_a_large_deletion(tenant: Tenant, people: Connection) -> None:
    _members(tenant, people, 4)
    before = len(numbered(tenant.pk))
    job = started(connections.delete_connection(tenant_id=tenant.pk, connection_id=people.pk))
    while True:
        assert folded(numbered(tenant.pk)) == tables(tenant.pk)
        if not run_next_chunk(job.pk):
            break

    of_a_user = ["organization.member.role.deleted", "organization.member.deleted", "group.member.deleted", "user.deleted"]
    assert types(tenant.pk)[before:] == [*of_a_user * 4, "connection.deleted"]
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)
    job.refresh_from_db()
    assert (job.status, percentage(job), job.summary["deleted"]) == ("completed", 100, 16)


def test_a_small_deletion_runs_in_the_request_and_leaves_no_job(tenant: Tenant, people: Connection) -> None:
    _members(tenant, people, 2)
    assert connections.delete_connection(tenant_id=tenant.pk, connection_id=people.pk) is None
    assert not Connection.objects.of(tenant.pk).exists()
    assert not Job.objects.of(tenant.pk).exists()


@pytest.mark.usefixtures("small_chunks")
def test_a_connection_that_is_being_deleted_refuses_new_rows_and_every_change(tenant: Tenant, people: Connection) -> None:
    other = make_connection(tenant_id=tenant.pk, name="other")
    primary = make_user(connection=other)
    made = [make_user(connection=people) for _ in range(9)]
    organization = make_organization(tenant)
    connections.delete_connection(tenant_id=tenant.pk, connection_id=people.pk)
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    marked = Connection.objects.of(tenant.pk).get(pk=people.pk)

    assert marked.is_being_deleted
    refused: list[Callable[[], Any]] = [
        lambda: users.create_user(**here, connection=marked, email="new@example.test"),
        lambda: users.link_users(**here, primary_id=primary.user_id, secondary_id=made[-1].user_id),
        lambda: memberships.add_connection(**here, organization_id=organization.pk, connection_id=people.pk),
        lambda: groups.create_group(**here, name="new", type="connection", connection_id=people.pk),
        lambda: imports.start_import(**here, connection_id=people.pk, rows=[{"email": "new@example.test"}]),
        lambda: connections.update_connection(**here, connection_id=people.pk, changes={"display_name": "New"}),
    ]
    for call in refused:
        with pytest.raises(BeingDeleted):
            call()
    assert types(tenant.pk).count("connection.updated") == 0


@pytest.mark.usefixtures("small_chunks")
def test_a_repeated_request_continues_the_job_or_starts_a_new_job_after_a_failure(tenant: Tenant, people: Connection) -> None:
    for _ in range(9):
        make_user(connection=people)
    named = {"tenant_id": tenant.pk, "connection_id": people.pk}
    first = started(connections.delete_connection(**named))
    assert connections.delete_connection(**named) == first
    Job.objects.of(tenant.pk).filter(pk=first.pk).update(status="failed")

    second = started(connections.delete_connection(**named))

    assert second != first
    assert run_job(second.pk)
    with pytest.raises(NotFound):
        connections.delete_connection(**named)


@pytest.mark.usefixtures("small_chunks")
def test_an_organization_is_deleted_in_chunks_with_its_groups_and_roles(tenant: Tenant, people: Connection) -> None:
    made = _members(tenant, people, 4)
    organization = Organization.objects.of(tenant.pk).get()
    inside = groups.create_group(tenant_id=tenant.pk, name="inside", type="organization", organization_id=organization.pk)
    groups.add_group_members(tenant_id=tenant.pk, group_id=inside.pk, user_ids=[user.user_id for user in made])
    roles.create_role(tenant_id=tenant.pk, name="own", type="organization", organization_id=organization.pk)
    before = len(numbered(tenant.pk))

    job = started(organizations.delete_organization(tenant_id=tenant.pk, organization_id=organization.pk))
    with pytest.raises(BeingDeleted):
        memberships.add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[made[0].user_id])
    assert run_job(job.pk)

    assert [(name, len(list(run))) for name, run in groupby(types(tenant.pk)[before:])] == [
        ("organization.member.role.deleted", 4),
        ("organization.member.deleted", 4),
        ("group.member.deleted", 4),
        ("group.deleted", 1),
        ("organization.deleted", 1),
    ]
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


@pytest.mark.usefixtures("small_chunks")
def test_groups_and_roles_with_many_members_are_deleted_in_chunks(tenant: Tenant, people: Connection) -> None:
    made = [make_user(connection=people) for _ in range(8)]
    ids = [user.user_id for user in made]
    group, role = make_group(tenant), make_role(tenant)
    groups.add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=ids)
    roles.assign_role_to_users(tenant_id=tenant.pk, role_id=role.pk, user_ids=ids)
    assert what_hangs_on(group) == {"members": 8}

    of_group = started(groups.delete_group(tenant_id=tenant.pk, group_id=group.pk))
    of_role = started(roles.delete_role(tenant_id=tenant.pk, role_id=role.pk))
    with pytest.raises(BeingDeleted):
        groups.add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=ids)
    with pytest.raises(BeingDeleted):
        roles.assign_role_to_users(tenant_id=tenant.pk, role_id=role.pk, user_ids=ids)
    assert deletion_job(tenant.pk, group.pk) == of_group
    assert run_job(of_group.pk)
    assert run_job(of_role.pk)

    assert not Group.objects.of(tenant.pk).exists()
    assert not UserRole.objects.of(tenant.pk).exists()
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


@contextmanager
def writing(*writers: Callable[[], Any]) -> Iterator[list[Exception]]:
    """Run each writer repeatedly in its own thread while the block runs. Yield a list of their errors, without refusals."""
    stopping, errors = threading.Event(), list[Exception]()

    def run(writer: Callable[[], Any]) -> None:
        try:
            # Wait between writes, as real writers do. Otherwise, the writers would leave no time for the deletion.
            while not stopping.wait(0.02):
                try:
                    writer()
                except (BeingDeleted, NotFound):
                    continue
        except Exception as error:
            errors.append(error)
        finally:
            database_connections.close_all()

    threads = [threading.Thread(target=run, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        stopping.set()
        for thread in threads:
            thread.join(30)


@pytest.mark.sized
def test_thousands_of_users_are_deleted_during_writes_to_the_same_tenant(tenant: Tenant, people: Connection) -> None:
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    count = sized(800, deep=5000)
    made = User.objects.of(tenant.pk).bulk_create(
        users.new_user(people, f"{number:024x}", {"name": str(number)}) for number in range(count)
    )
    other = make_connection(**here, name="other")
    staying = make_user(connection=other)
    group, organization = make_group(tenant), make_organization(tenant)
    GroupMember.objects.of(tenant.pk).bulk_create(GroupMember(tenant=tenant, group=group, user=user) for user in made[::50])
    OrganizationMember.objects.of(tenant.pk).bulk_create(
        OrganizationMember(tenant=tenant, organization=organization, user=user) for user in made[::70]
    )
    last = made[-1].user_id

    with writing(
        lambda: users.update_user(**here, user_id=staying.user_id, changes={"name": "Ada"}),
        lambda: users.create_user(**here, connection=other, name="Grace"),
        lambda: groups.add_group_members(**here, group_id=group.pk, user_ids=[last, staying.user_id]),
        lambda: memberships.remove_members(**here, organization_id=organization.pk, user_ids=[last, staying.user_id]),
    ) as errors:
        job = started(connections.delete_connection(**here, connection_id=people.pk))
        while not run_job(job.pk, chunks=1):
            pass

    assert errors == []
    job.refresh_from_db()
    assert job.status == "completed"
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)
    assert types(tenant.pk).count("user.deleted") == count
    assert types(tenant.pk).count("connection.deleted") == 1


@pytest.mark.usefixtures("small_chunks")
def test_a_connection_is_visible_over_http_until_its_deletion_ends(tenant: Tenant, people: Connection) -> None:
    api = Management(tenant)
    for _ in range(9):
        make_user(connection=people)
    first = api.delete(f"connections/{people.pk}")
    assert (first.status, api.delete(f"connections/{people.pk}").json) == (202, first.json)
    assert api.get(f"connections/{people.pk}").status == 200
    refused = api.patch(f"connections/{people.pk}", {"display_name": "New"})
    assert (refused.status, refused.json["message"]) == (409, "The connection people is being deleted.")

    assert run_job(started(deletion_job(tenant.pk, people.pk)).pk)

    assert api.get(f"connections/{people.pk}").status == 404
    assert api.delete(f"connections/{people.pk}").status == 204
