"""Workers are killed during an import, an export and a bulk act. The next worker continues the job, and repeats no part of it."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections import Counter
from collections.abc import Callable

from django.db import connection

from events.models import Head
from foundation.acting import Act, Actor, acting
from identity.exports.export_files import exported_file, file_name, read_piece
from identity.exports.exports import start_export
from identity.imports.imports import CHUNK_ROWS, start_import
from identity.models import AuditEntry, Connection, Job, Tenant, User
from identity.services.bulk_jobs import start_bulk_job
from identity.services.row_acts import BLOCK_USERS
from identity.services.users import new_user
from tests.deadlines import eventually
from tests.events.log_reading import numbered
from tests.factories.admin import new_staff
from tests.faults.worker import Worker

ROWS = CHUNK_ROWS * 12


def kill_children(worker: Worker) -> None:
    for pid in worker.children():
        os.kill(pid, signal.SIGKILL)


def let_lease_run_out(job: Job) -> None:
    """End the lease of the job now, instead of after a minute."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_job SET lease_until = now() WHERE id = %s AND lease_until IS NOT NULL", [job.pk])


def rows_done(job: Job) -> int:
    job.refresh_from_db()
    return job.rows_done


def finish(job: Job) -> None:
    def is_finished() -> bool:
        job.refresh_from_db()
        return job.is_finished

    eventually(is_finished, seconds=120)
    assert job.status == "completed", job.status_details


def test_an_import_completes_although_its_workers_are_killed(
    tenant: Tenant, database_connection: Connection, start_worker: Callable[..., Worker]
) -> None:
    rows = [{"email": f"user{number}@example.test"} for number in range(ROWS)]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    worker = start_worker(EVENTS_SWEEPER_ENABLED="1")
    for share in (1, 5):
        eventually(lambda share=share: rows_done(job) >= share * CHUNK_ROWS, seconds=90)  # type: ignore[misc]  # bound at once
        kill_children(worker)
        let_lease_run_out(job)
    worker.kill()
    let_lease_run_out(job)
    start_worker(EVENTS_SWEEPER_ENABLED="1")
    finish(job)
    assert job.summary == {"total": ROWS, "inserted": ROWS, "updated": 0, "failed": 0}
    assert User.objects.of(tenant.pk).count() == ROWS
    created = Counter(event["data"]["object"]["email"] for event in numbered(tenant.pk) if event["type"] == "user.created")
    assert len(created) == ROWS
    assert set(created.values()) == {1}
    assert Head.objects.get(pk=tenant.pk).position == ROWS + 1


def test_an_export_completes_although_its_workers_are_killed(
    tenant: Tenant, database_connection: Connection, start_worker: Callable[..., Worker]
) -> None:
    found = [User(tenant_id=tenant.pk, connection=database_connection, user_id=f"database|{number}") for number in range(ROWS)]
    for start in range(0, ROWS, 1000):
        User.objects.of(tenant.pk).bulk_create(found[start : start + 1000])
    job = start_export(tenant_id=tenant.pk)
    worker = start_worker(EVENTS_SWEEPER_ENABLED="1")
    for share in (1, 5):
        eventually(lambda share=share: rows_done(job) >= share * CHUNK_ROWS, seconds=90)  # type: ignore[misc]  # bound at once
        kill_children(worker)
        let_lease_run_out(job)
    worker.kill()
    let_lease_run_out(job)
    start_worker(EVENTS_SWEEPER_ENABLED="1")
    finish(job)
    file = exported_file(tenant_id=tenant.pk, name=file_name(job))
    text = gzip.decompress(b"".join(read_piece(file, number) for number in range(file.piece_count)))
    assert [json.loads(line)["user_id"] for line in text.splitlines()] == [f"database|{number}" for number in range(ROWS)]


def test_a_bulk_act_completes_although_its_workers_are_killed(
    tenant: Tenant, database_connection: Connection, start_worker: Callable[..., Worker]
) -> None:
    people = [new_user(database_connection, f"u{number}", {"email": f"user{number}@example.test"}) for number in range(600)]
    User.objects.of(tenant.pk).bulk_create(people)
    staff = new_staff(tenant)
    with acting(Act(Actor("staff", str(staff.pk), staff.email), label=BLOCK_USERS.label, reason="They left.")):
        job = start_bulk_job(tenant_id=tenant.pk, act=BLOCK_USERS, rows=BLOCK_USERS.rows_of(tenant.pk))
    worker = start_worker(EVENTS_SWEEPER_ENABLED="1")
    for share in (1, 3):
        eventually(lambda share=share: rows_done(job) >= share * 50, seconds=90)  # type: ignore[misc]  # bound at once
        kill_children(worker)
        let_lease_run_out(job)
    finish(job)
    assert job.summary == {"total": 600, "done": 600, "failed": 0, "gone": 0}
    updated = Counter(event["data"]["object"]["user_id"] for event in numbered(tenant.pk) if event["type"] == "user.updated")
    noted = Counter(AuditEntry.objects.filter(facts__job=job.pk, object_type="identity.user").values_list("object_id", flat=True))
    assert len(updated) == len(noted) == 600
    assert set(updated.values()) == set(noted.values()) == {1}
