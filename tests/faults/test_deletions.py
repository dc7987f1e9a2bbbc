"""Deletions whose workers are killed. The next worker continues the deletion, and deletes nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby

import pytest
from django.db import connection

from identity.models import Connection, Group, GroupMember, Job, Organization, OrganizationMember, Tenant, User
from identity.services import connections, groups, organizations, tenant_deletion, users
from tests.deadlines import eventually
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.identity import make_connection
from tests.factories.organizations import make_group, make_organization
from tests.faults.worker import Worker

pytestmark = pytest.mark.fault

StartWorker = Callable[..., Worker]
COUNT = 2000


@pytest.fixture
def people(tenant: Tenant) -> Connection:
    return make_connection(tenant_id=tenant.pk, name="people")


@pytest.fixture
def members(tenant: Tenant, people: Connection) -> list[User]:
    rows = (users.new_user(people, f"{number:024x}", {"name": str(number)}) for number in range(COUNT))
    return User.objects.of(tenant.pk).bulk_create(rows)


def _killed_in_the_middle(start_worker: StartWorker, job: Job) -> None:
    """Kill a worker after at least one chunk of the job. End the lease of the job, and let another worker finish the job."""
    before = job.summary["deleted"]

    def has_moved() -> bool:
        job.refresh_from_db()
        return bool(job.summary["deleted"] > before) or job.is_finished

    worker = start_worker(concurrency=1, EVENTS_SWEEPER_ENABLED="1")
    eventually(has_moved, seconds=60)
    worker.kill()
    job.refresh_from_db()
    assert not job.is_finished, "the worker was too fast to be killed in the middle"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_job SET lease_until = now() WHERE id = %s AND lease_until IS NOT NULL", [job.pk])
    start_worker(concurrency=1, EVENTS_SWEEPER_ENABLED="1")
    eventually(lambda: Job.objects.of(job.tenant_id).filter(pk=job.pk, status="completed").exists(), seconds=90)


def _assert_nothing_twice(tenant: Tenant) -> None:
    recorded = numbered(tenant.pk)
    assert folded(recorded) == tables(tenant.pk)
    deleted = Counter(event["data"]["object"].get("user_id") for event in recorded if event["type"] == "user.deleted")
    assert set(deleted.values()) <= {1}


@pytest.mark.usefixtures("members")
def test_the_deletion_of_a_connection_resumes_after_a_kill(tenant: Tenant, people: Connection, start_worker: StartWorker) -> None:
    job = connections.delete_connection(tenant_id=tenant.pk, connection_id=people.pk)
    assert job is not None

    _killed_in_the_middle(start_worker, job)

    _assert_nothing_twice(tenant)
    assert Counter(types(tenant.pk))["user.deleted"] == COUNT
    assert types(tenant.pk)[-1] == "connection.deleted"


def test_the_deletion_of_an_organization_and_a_group_resumes_after_a_kill(
    tenant: Tenant, members: list[User], start_worker: StartWorker
) -> None:
    organization, group = make_organization(tenant), make_group(tenant)
    OrganizationMember.objects.of(tenant.pk).bulk_create(
        OrganizationMember(tenant=tenant, organization=organization, user=user) for user in members
    )
    GroupMember.objects.of(tenant.pk).bulk_create(GroupMember(tenant=tenant, group=group, user=user) for user in members)
    job = organizations.delete_organization(tenant_id=tenant.pk, organization_id=organization.pk)
    assert job is not None

    _killed_in_the_middle(start_worker, job)
    of_group = groups.delete_group(tenant_id=tenant.pk, group_id=group.pk)
    assert of_group is not None
    eventually(lambda: not Group.objects.of(tenant.pk).exists(), seconds=90)

    assert not Organization.objects.of(tenant.pk).exists()
    _assert_nothing_twice(tenant)
    gone = [(name, len(list(run))) for name, run in groupby(types(tenant.pk)) if name.endswith("deleted")]
    assert gone == [
        ("organization.member.deleted", COUNT),
        ("organization.deleted", 1),
        ("group.member.deleted", COUNT),
        ("group.deleted", 1),
    ]


@pytest.mark.usefixtures("members")
def test_the_deletion_of_a_tenant_resumes_after_a_kill(tenant: Tenant, start_worker: StartWorker) -> None:
    job = tenant_deletion.start(tenant_id=tenant.pk)

    _killed_in_the_middle(start_worker, job)

    _assert_nothing_twice(tenant)
    assert tables(tenant.pk) == {}
    assert Tenant.objects.get(pk=tenant.pk).status == "deleted"
