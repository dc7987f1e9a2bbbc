"""How jobs run: a failed chunk is rolled back and repeated, and a job that fails too often is reported as failed."""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from foundation.secrets.vault import SecretUnreadable
from identity.exports.export_files import exported_file, file_name
from identity.exports.exports import start_export
from identity.imports.imports import CHUNK_ROWS, start_import
from identity.models import Connection, Job, JobChunk, JobError, JobUser, Tenant, User
from identity.services.connections import delete_connection
from identity.services.failures import NotFound
from identity.services.job_retention import prune_jobs
from identity.services.jobs import FAILURE_LIMIT, run_job, run_next_chunk
from tests.factories.models.identity import StaffFactory, TenantFactory
from tests.identity.sweeps import take_all_unattended_jobs


@pytest.fixture
def job(tenant: Tenant, database_connection: Connection) -> Job:
    return start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[{"email": "ada@example.test"}])


def test_only_one_sweep_starts_a_pending_job(job: Job) -> None:
    assert job.pk in take_all_unattended_jobs()
    assert job.pk not in take_all_unattended_jobs()


@pytest.fixture
def job_of_two(tenant: Tenant, database_connection: Connection) -> Job:
    """Return an import of two chunks. The second chunk cannot be decrypted."""
    rows = [{"email": f"user{number}@example.test"} for number in range(CHUNK_ROWS + 1)]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    damage(job, CHUNK_ROWS)
    return job


def damage(job: Job, number: int) -> bytes:
    chunk = JobChunk.objects.get(job=job, number=number)
    whole = bytes(chunk.content)
    JobChunk.objects.filter(pk=chunk.pk).update(content=whole[:-1])
    return whole


def test_a_chunk_that_fails_unexpectedly_is_rolled_back_and_retried(job: Job, job_of_two: Job, tenant: Tenant) -> None:
    with pytest.raises(SecretUnreadable):
        run_job(job_of_two.pk)
    job_of_two.refresh_from_db()
    assert (job_of_two.status, job_of_two.failures, job_of_two.summary["inserted"]) == ("processing", 1, CHUNK_ROWS)
    JobChunk.objects.filter(job=job_of_two, number=CHUNK_ROWS).delete()
    assert run_job(job_of_two.pk)
    job_of_two.refresh_from_db()
    assert (job_of_two.status, job_of_two.failures, job_of_two.summary["inserted"]) == ("completed", 0, CHUNK_ROWS)
    assert job_of_two.finished_at is not None
    assert not JobUser.objects.filter(job=job_of_two).exists()


def test_a_job_that_keeps_failing_ends_with_a_message_and_without_its_input(job: Job) -> None:
    damage(job, 0)
    for _ in range(FAILURE_LIMIT):
        with pytest.raises(SecretUnreadable):
            run_job(job.pk)
    assert run_job(job.pk)
    job.refresh_from_db()
    assert job.status == "failed"
    assert "unexpected errors (SecretUnreadable)" in job.status_details
    assert job.pk not in take_all_unattended_jobs()
    assert not JobChunk.objects.filter(job=job).exists()


def test_another_tenant_cannot_find_the_file_of_an_export(tenant: Tenant) -> None:
    other = TenantFactory.create()
    job = Job.objects.of(tenant.pk).create(tenant_id=tenant.pk, type=Job.Type.USERS_EXPORT, status=Job.Status.COMPLETED)
    assert exported_file(tenant_id=tenant.pk, name=file_name(job)).job_id == job.pk
    with pytest.raises(NotFound):
        exported_file(tenant_id=other.pk, name=file_name(job))


def test_the_rows_of_an_import_are_stored_encrypted(job: Job) -> None:
    content = bytes(JobChunk.objects.get(job=job).content)
    assert b"ada@example.test" not in content
    with pytest.raises(zlib.error):
        zlib.decompress(content)


def test_an_import_that_takes_too_long_fails(job: Job) -> None:
    Job.objects.of(job.tenant_id).filter(pk=job.pk).update(started_at=timezone.now() - timedelta(seconds=7201))
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.status_details) == ("failed", "The job took longer than 7200 seconds.")
    assert not User.objects.of(job.tenant_id).exists()


def test_an_import_whose_connection_is_deleted_fails_with_the_reason(job: Job, tenant: Tenant) -> None:
    delete_connection(tenant_id=tenant.pk, connection_id=str(job.connection_id))
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.status_details) == ("failed", "The connection does not exist.")
    assert not User.objects.of(tenant.pk).exists()


def test_only_old_jobs_are_deleted_with_their_chunks_and_errors(tenant: Tenant, database_connection: Connection) -> None:
    jobs = [start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[{"email": 1}] * 3) for _ in range(2)]
    for job in jobs:
        assert run_job(job.pk)
    export = start_export(tenant_id=tenant.pk)
    assert run_job(export.pk)
    Job.objects.of(tenant.pk).filter(pk__in=[jobs[0].pk, export.pk]).update(finished_at=timezone.now() - timedelta(days=7, seconds=1))
    assert prune_jobs() >= 2
    assert list(Job.objects.of(tenant.pk)) == [jobs[1]]
    assert not JobChunk.objects.filter(job_id__in=[jobs[0].pk, export.pk]).exists()
    assert JobError.objects.filter(job__tenant=tenant).count() == 3


def test_the_admins_of_the_tenant_get_one_mail_when_an_import_ends(tenant: Tenant, database_connection: Connection) -> None:
    StaffFactory.create(tenant_id=tenant.pk, email=f"admin@{tenant.pk}.example.test", password="Correct-Horse-7-Battery")
    rows = [{"email": "ada@example.test"}, {"email": 1}]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows, send_completion_email=True)
    assert run_job(job.pk)
    assert [sent.to for sent in mail.outbox] == [[f"admin@{tenant.pk}.example.test"]]
    assert mail.outbox[0].subject == f"User import {job.pk}: completed"
    assert run_job(job.pk)
    assert len(mail.outbox) == 1


def test_a_completed_import_stays_completed_when_its_mail_cannot_be_sent(
    tenant: Tenant, database_connection: Connection, settings: Any
) -> None:
    StaffFactory.create(tenant_id=tenant.pk, email=f"admin@{tenant.pk}.example.test", password="Correct-Horse-7-Battery")
    settings.MAIL_IS_CONFIGURED = False
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[], send_completion_email=True)
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.has_effect_due, job.status_details) == ("completed", False, "No mail can be sent: EMAIL_URL is not set.")


def test_another_worker_sends_the_mail_that_a_killed_worker_has_not_sent(tenant: Tenant, database_connection: Connection) -> None:
    StaffFactory.create(tenant_id=tenant.pk, email=f"admin@{tenant.pk}.example.test", password="Correct-Horse-7-Battery")
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[], send_completion_email=True)
    assert not run_next_chunk(job.pk)
    assert job.pk not in take_all_unattended_jobs()
    Job.objects.of(tenant.pk).filter(pk=job.pk).update(lease_until=timezone.now())
    assert job.pk in take_all_unattended_jobs()
    assert run_job(job.pk)
    assert len(mail.outbox) == 1
