"""Bulk acts that run as jobs: refusals, repeated checks of the author's permission, and the state after a crash."""

from __future__ import annotations

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection as database
from django.db.models import QuerySet

from foundation.acting import Act, Actor, acting, current_act
from foundation.tenancy import tenant_bound
from identity.api.jobs import job_at
from identity.models import AuditEntry, Connection, CustomDomain, Job, JobChunk, Staff, Tenant, User
from identity.services import bulk_acts
from identity.services.bulk_acts import BulkAct, deletion_act
from identity.services.bulk_jobs import NobodyActs, start_bulk_job
from identity.services.failures import Conflict, NotFound
from identity.services.jobs import FAILURE_LIMIT, cancel_job, run_job, run_next_chunk
from identity.services.row_acts import BLOCK_USERS
from identity.services.users import delete_user
from tests.factories.admin import new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.identity import CustomDomainFactory
from tests.identity.sweeps import take_all_unattended_jobs


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


@pytest.fixture
def people(database_connection: Connection) -> list[User]:
    return [make_user(connection=database_connection, email=f"user{number}@example.test") for number in range(4)]


def started(tenant: Tenant, staff: Staff, act: BulkAct = BLOCK_USERS, rows: QuerySet[User] | None = None) -> Job:
    with acting(Act(Actor("staff", str(staff.pk), staff.email), ip="192.0.2.7", label=act.label, reason="Spring cleaning")):
        return start_bulk_job(tenant_id=tenant.pk, act=act, rows=act.rows_of(tenant.pk) if rows is None else rows)


def ended(job: Job) -> Job:
    assert run_job(job.pk)
    job.refresh_from_db()
    return job


def blocked(tenant: Tenant) -> int:
    return User.objects.of(tenant.pk).filter(blocked=True).count()


def test_only_a_staff_account_can_start_a_bulk_act(tenant: Tenant, people: list[User]) -> None:
    for act in (None, Act(Actor("client", "c", "c")), Act(Actor("command", "root", "root"))):
        with acting(act), pytest.raises(NobodyActs):
            start_bulk_job(tenant_id=tenant.pk, act=BLOCK_USERS, rows=BLOCK_USERS.rows_of(tenant.pk))
    assert not Job.objects.of(tenant.pk).exists()


def test_a_job_never_selects_rows_of_other_tenants(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    other = new_tenant("other")

    job = started(other, new_staff(None), rows=User.all_tenants.filter(pk__in=[user.pk for user in people]))

    assert ended(job).summary["total"] == 0
    assert blocked(tenant) == 0


def test_keys_of_another_tenant_count_as_missing_rows(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    """A job does not trust its stored keys: it searches for the rows with these keys only in its own tenant."""
    other = new_tenant("other")
    foreign = started(tenant, staff)
    job = started(other, new_staff(other))
    Job.all_tenants.filter(pk=foreign.pk).update(tenant=other)
    Staff.objects.filter(pk=staff.pk).update(tenant=other)

    assert ended(foreign).summary == {"total": 4, "done": 0, "failed": 0, "gone": 4}
    assert ended(job).summary["total"] == 0
    assert blocked(tenant) == 0


def test_a_refusal_by_a_service_is_recorded_and_the_other_rows_are_processed(tenant: Tenant) -> None:
    CustomDomainFactory.create(tenant_id=tenant.pk, host=f"second.{tenant.pk}.example.test")
    own = CustomDomain.objects.of(tenant.pk).get(is_canonical=True)

    job = ended(started(tenant, new_staff(None), deletion_act(CustomDomain)))

    assert (job.status, job.summary) == ("completed", {"total": 2, "done": 1, "failed": 1, "gone": 0})
    assert list(CustomDomain.objects.of(tenant.pk)) == [own]
    [error] = job.errors.all()
    assert error.user == {"name": str(own), "id": str(own.pk)}
    assert error.errors[0]["code"] == "NotSupported"
    assert not AuditEntry.objects.filter(facts__job=job.pk, object_id=str(own.pk)).exists()


def test_only_the_row_that_fails_is_rolled_back(tenant: Tenant, staff: Staff, people: list[User], caplog: pytest.LogCaptureFixture) -> None:
    with database.cursor() as cursor:
        # The metadata is too large for an event, so the service cannot record the change of this row.
        cursor.execute(
            "UPDATE identity_user SET app_metadata = jsonb_build_object('x', repeat('x', 2000000)) WHERE id = %s", [people[1].pk]
        )

    job = ended(started(tenant, staff))

    assert (job.status, job.failures, job.summary) == ("completed", 0, {"total": 4, "done": 3, "failed": 1, "gone": 0})
    assert "An unexpected error" in job.errors.get().errors[0]["message"]
    assert f"job {job.pk}: row 1 failed" in caplog.text
    assert blocked(tenant) == 3
    assert User.objects.of(tenant.pk).get(pk=people[1].pk).blocked is None


def test_a_job_fails_if_a_row_repeatedly_exceeds_the_time_limit_of_the_task(
    tenant: Tenant, staff: Staff, people: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_row: User) -> None:
        # The time limit interrupts the task while it waits for a response of the database. Afterwards, the connection is unusable.
        database.ensure_connection()
        database.connection.pgconn.send_query(b"SELECT 1")
        raise SoftTimeLimitExceeded

    act = BulkAct("wait", User, "Wait for selected users", "waited for", BLOCK_USERS.permission, wait)
    monkeypatch.setitem(bulk_acts._acts, act.key, act)
    job = started(tenant, staff, act)

    for _ in range(FAILURE_LIMIT):
        with pytest.raises(SoftTimeLimitExceeded):
            run_job(job.pk)

    job.refresh_from_db()
    assert job.status == "failed"
    assert "SoftTimeLimitExceeded" in job.status_details


def test_a_row_whose_statement_takes_too_long_fails_and_the_other_rows_are_processed(
    tenant: Tenant, staff: Staff, people: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.services.bulk_jobs._STATEMENT_SECONDS", 0.1)

    def wait(row: User) -> None:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [60 if row.pk == people[1].pk else 0])

    act = BulkAct("wait", User, "Wait for selected users", "waited for", BLOCK_USERS.permission, wait)
    monkeypatch.setitem(bulk_acts._acts, act.key, act)

    job = ended(started(tenant, staff, act))

    assert (job.status, job.summary) == ("completed", {"total": 4, "done": 3, "failed": 1, "gone": 0})
    assert job.errors.get().errors[0]["code"] == "TookTooLong"


def test_a_row_that_was_deleted_in_the_meantime_is_counted_as_missing(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    job = started(tenant, staff)
    delete_user(tenant_id=tenant.pk, user_id=people[2].user_id)

    assert ended(job).summary == {"total": 4, "done": 3, "failed": 0, "gone": 1}
    assert job.percentage_done == 100


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": "auditor"}, {"tenant": None, "role": "auditor"}, "deleted", "moved"])
def test_a_job_stops_if_its_author_loses_the_permission(tenant: Tenant, staff: Staff, people: list[User], change: object) -> None:
    job = started(tenant, staff)
    if change == "deleted":
        staff.delete()
    else:
        changes = {"tenant": new_tenant("other")} if change == "moved" else change
        Staff.objects.filter(email=staff.email).update(**changes)  # type: ignore[arg-type]

    assert ended(job).status == "failed"
    assert "may no longer do this" in job.status_details
    assert blocked(tenant) == 0


def test_a_tenant_admin_cannot_start_a_bulk_act_that_only_platform_operators_may_run(tenant: Tenant, staff: Staff) -> None:
    assert ended(started(tenant, staff, deletion_act(CustomDomain))).status == "failed"
    assert CustomDomain.objects.of(tenant.pk).exists()


def test_a_job_fails_if_its_bulk_act_no_longer_exists_in_the_code(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    job = started(tenant, staff)
    job.parameters = {**job.parameters, "act": "identity.user:forget"}
    job.save()

    assert ended(job).status_details == "The service no longer has this act."


def test_an_interrupted_chunk_changes_no_row_and_is_repeated(
    tenant: Tenant, staff: Staff, people: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.services.bulk_jobs._ROWS_PER_STEP", 2)
    job = started(tenant, staff)
    assert run_next_chunk(job.pk)
    with database.cursor() as cursor:
        # The constraint makes the chunk fail after it has written its rows, as if the worker were killed before the commit.
        cursor.execute("ALTER TABLE identity_job ADD CONSTRAINT cut_off CHECK (NOT (summary @> '{\"done\": 4}')) NOT VALID")
        try:
            with pytest.raises(Exception, match="cut_off"):
                run_job(job.pk)
            assert blocked(tenant) == 2
        finally:
            cursor.execute("ALTER TABLE identity_job DROP CONSTRAINT cut_off")

    assert ended(job).summary == {"total": 4, "done": 4, "failed": 0, "gone": 0}
    entries = AuditEntry.objects.filter(facts__job=job.pk, object_type="identity.user")
    assert sorted(entries.values_list("object_id", flat=True)) == sorted(str(user.pk) for user in people)
    assert current_act() is None


def test_a_canceled_job_deletes_its_selection(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    job = started(tenant, staff)
    cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor=staff.email)

    assert ended(job).status == "failed"
    assert blocked(tenant) == 0
    assert not JobChunk.objects.filter(job=job).exists()
    with pytest.raises(Conflict):
        cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor=staff.email)


def test_the_sweep_takes_a_job_whose_message_to_a_worker_was_lost(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    job = started(tenant, staff)
    assert job.pk in take_all_unattended_jobs()


def test_the_management_interface_does_not_show_bulk_jobs(tenant: Tenant, staff: Staff, people: list[User]) -> None:
    job = started(tenant, staff)
    with tenant_bound(tenant.pk), pytest.raises(NotFound):
        job_at(job.pk)
