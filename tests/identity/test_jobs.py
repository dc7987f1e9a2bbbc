"""The engine of jobs: what goes wrong in a chunk is undone, counted and in the end told."""

from __future__ import annotations

import pytest

from identity.models import Connection, Job, JobChunk, Tenant, User
from identity.services.connections import delete_connection
from identity.services.imports import start_import
from identity.services.jobs import FAILURE_LIMIT, run_job, take_unattended_jobs


@pytest.fixture
def job(tenant: Tenant, database_connection: Connection) -> Job:
    return start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[{"email": "ada@example.test"}])


def test_a_pending_job_is_taken_by_one_sweep_only(job: Job) -> None:
    assert job.pk in take_unattended_jobs()
    assert job.pk not in take_unattended_jobs()


def test_a_chunk_that_fails_unexpectedly_leaves_nothing_and_is_tried_again(job: Job) -> None:
    JobChunk.objects.filter(job=job).update(rows=[{"email": "ada@example.test"}, {"email": "grace@example.test"}])
    JobChunk.objects.create(job=job, number=1, rows=7)
    with pytest.raises(TypeError):
        run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.failures, job.summary["inserted"]) == ("processing", 1, 2)
    JobChunk.objects.filter(job=job, number=1).update(rows=[{"email": "alan@example.test"}])
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.failures, job.summary["inserted"]) == ("completed", 0, 3)
    assert job.finished_at is not None


def test_a_job_that_keeps_failing_ends_as_failed_and_says_so(job: Job) -> None:
    JobChunk.objects.filter(job=job).update(rows=7)
    for _ in range(FAILURE_LIMIT):
        with pytest.raises(TypeError):
            run_job(job.pk)
    assert run_job(job.pk)
    job.refresh_from_db()
    assert job.status == "failed"
    assert "unexpected errors (TypeError)" in job.status_details
    assert job.pk not in take_unattended_jobs()


def test_an_import_whose_connection_is_gone_fails_with_the_reason(job: Job, tenant: Tenant) -> None:
    delete_connection(tenant_id=tenant.pk, connection_id=str(job.connection_id))
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.status_details) == ("failed", "The connection does not exist.")
    assert not User.objects.of(tenant.pk).exists()
