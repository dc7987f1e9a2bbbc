"""The pages of jobs: progress, the errors of each row, and the file of an export."""

from __future__ import annotations

import gzip
import json

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from identity.exports.exports import start_export
from identity.imports.imports import CHUNK_ROWS, start_import
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job, run_next_chunk
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user


def page_of(browser: Client, job: Job) -> str:
    return browser.get(reverse("admin:identity_job_change", args=(quote(job.pk),))).content.decode()


@pytest.fixture
def export(tenant: Tenant, database_connection: Connection) -> Job:
    make_user(connection=database_connection, email="ada@example.test")
    job = start_export(tenant_id=tenant.pk)
    assert run_job(job.pk)
    return job


def test_the_page_of_a_running_job_shows_its_progress_and_reloads_itself(
    browser: Client, tenant: Tenant, database_connection: Connection
) -> None:
    rows = [{"email": f"user{number}@example.test"} for number in range(2 * CHUNK_ROWS)]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    assert run_next_chunk(job.pk)
    page = page_of(browser, job)
    assert "50 %" in page
    assert "500 of 1,000: 500 added, 0 updated, 0 failed" in page
    assert "about " in page
    assert '<meta http-equiv="refresh" content="5">' in page
    assert run_job(job.pk)
    assert "http-equiv" not in page_of(browser, job)


def test_refused_rows_are_listed_with_the_reason(browser: Client, tenant: Tenant, database_connection: Connection) -> None:
    rows = [{"email": "fine@example.test"}, {"email": "bad@example.test", "name": 5, "password_hash": "hash-of-bad"}]
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=rows)
    assert run_job(job.pk)
    page = page_of(browser, job)
    for shown in ("bad@example.test", "INVALID_TYPE", "Text is expected.", "MIN_LENGTH"):
        assert shown in page
    assert "hash-of-bad" not in page


def test_only_staff_of_the_tenant_can_download_the_file_of_a_job(browser: Client, tenant: Tenant, export: Job) -> None:
    assert "Download the file" in page_of(browser, export)
    place = reverse("admin:identity_job_file", args=(quote(export.pk),))
    answer = browser.get(place)
    assert answer["Content-Type"] == "application/gzip"
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # it streams
    assert json.loads(gzip.decompress(content))["email"] == "ada@example.test"
    assert browser_of(new_staff(new_tenant())).get(place).status_code in (302, 404)
    assert Client(headers={"host": "localhost"}).get(place).status_code == 302


def test_a_job_without_a_file_has_no_download_link(browser: Client, tenant: Tenant) -> None:
    job = start_export(tenant_id=tenant.pk)
    assert "Download" not in page_of(browser, job)
    assert browser.get(reverse("admin:identity_job_file", args=(quote(job.pk),))).status_code == 404


def test_the_list_of_jobs_and_its_filter_show_types_in_words(browser: Client, export: Job) -> None:
    page = browser.get(reverse("admin:identity_job_changelist")).content.decode()

    assert "Export of users" in page
    assert "Password reset email" in page
    assert "Users Export" not in page


def test_the_page_of_a_waiting_job_leaves_out_empty_values(browser: Client, tenant: Tenant, database_connection: Connection) -> None:
    job = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[{"email": "ada@example.test"}])
    place = reverse("admin:identity_job_change", args=(quote(job.pk),))

    waiting = browser.get(place).content.decode()
    assert "field-finished_at" not in waiting
    assert "No row has failed so far." in waiting
    assert "All rows were imported." not in waiting
    run_job(job.pk)
    finished = browser.get(place).content.decode()
    assert "field-finished_at" in finished
    assert "All rows were imported." in finished
