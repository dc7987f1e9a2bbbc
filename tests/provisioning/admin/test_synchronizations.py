"""Synchronizations and the deletion guard on the page of a stream, used by a signed-in staff account."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Connection, Job, Staff, Tenant
from identity.services.jobs import run_job
from provisioning.engine import dispatch
from provisioning.engine.deletion_guard import guard_of, set_guard
from provisioning.synchronization import work  # noqa: F401 (it registers the functions of the jobs)
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_user
from tests.factories.scim import RealServer, running_scim_server
from tests.provisioning.engine.logs import append_events
from tests.provisioning.synchronization.conftest import stream_to


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running_scim_server() as running:
        yield running


@pytest.fixture
def scim(tenant: Tenant, server: RealServer) -> Iterator[EventStream]:
    yield stream_to(tenant, server.base_url)
    server.clear()


@pytest.fixture
def browser(tenant: Tenant, settings: Settings) -> Client:
    settings.SECURE_SSL_REDIRECT = False
    return _signed_in(tenant)


def _signed_in(tenant: Tenant) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(Staff.objects.create_user(f"admin@{tenant.pk}.test", "long-enough-password", tenant=tenant))
    return client


def _stream_page(stream: EventStream, action: str) -> str:
    return reverse("admin:events_eventstream_action", args=(quote(stream.pk), action))


def _job_page(job: Job, action: str) -> str:
    return reverse("admin:identity_job_action", args=(quote(job.pk), action))


def _place_of(job: Job) -> str:
    return reverse("admin:identity_job_change", args=(quote(job.pk),))


def _newest(tenant: Tenant) -> Job:
    job = Job.objects.of(tenant.pk).order_by("-created_at").first()
    assert job is not None
    run_job(job.pk)
    job.refresh_from_db()
    return job


def test_a_button_starts_a_dry_run_and_its_report_has_a_button_that_writes(
    browser: Client, tenant: Tenant, database_connection: Connection, scim: EventStream, server: RealServer
) -> None:
    user = make_user(connection=database_connection, email="anna@example.test")
    nameless = make_user(connection=database_connection, email=None, phone_number="+4712345678")
    server.add(userName="gone@example.test", externalId="database|gone")
    assert browser.post(_stream_page(scim, "synchronize"), {"match": "userName", "rate": 500}).status_code == 302
    dry = _newest(tenant)
    assert (dry.parameters["plan"]["is_dry_run"], server.user(user.user_id)) == (True, None)

    page = browser.get(reverse("admin:identity_job_change", args=(quote(dry.pk),))).content.decode()
    assert "Dry run: 1 created, 1 skipped, 1 extra" in page
    assert nameless.user_id in page
    assert "missing userName" in page
    assert dry.pk in browser.get(reverse("admin:events_eventstream_change", args=(quote(scim.pk),))).content.decode()

    asked = browser.post(_job_page(dry, "write"), {"enable": "on", "delete_missing": "on", "deletion_limit": "0"})
    assert asked.status_code == 302
    job = _newest(tenant)
    assert "Confirm or decline" in job.status_details
    for place in (
        _place_of(job),
        reverse("admin:identity_job_changelist"),
        reverse("admin:events_eventstream_change", args=(quote(scim.pk),)),
    ):
        assert "Waiting for a decision" in browser.get(place).content.decode()
    assert browser.post(_job_page(job, "confirm-deletions")).status_code == 302
    assert "Waiting for a decision" not in browser.get(_place_of(job)).content.decode()
    run_job(job.pk)
    job.refresh_from_db()
    scim.refresh_from_db()
    assert (job.status, scim.status) == ("completed", "enabled")
    page = browser.get(_place_of(job)).content.decode()
    assert ("Deletions allowed" in page, f"by admin@{tenant.pk}.test" in page) == (True, True)
    assert [account["externalId"] for account in server.users()] == [user.user_id]


def test_staff_can_resume_a_stopped_synchronization_and_decline_its_deletions(
    browser: Client, tenant: Tenant, scim: EventStream, server: RealServer
) -> None:
    server.add(userName="gone@example.test", externalId="database|gone")
    browser.post(_stream_page(scim, "synchronize"), {"match": "userName", "rate": 500})
    browser.post(_job_page(_newest(tenant), "write"), {"delete_missing": "on", "deletion_limit": "0"})
    job = _newest(tenant)
    Job.objects.of(tenant.pk).filter(pk=job.pk).update(parameters={**job.parameters, "waits_for": "resume"})
    assert browser.post(_job_page(job, "resume")).status_code == 302
    assert browser.post(_job_page(_newest(tenant), "decline-deletions")).status_code == 302
    job.refresh_from_db()
    assert {job.parameters["resumed_by"], job.parameters["declined_by"]} == {f"admin@{tenant.pk}.test"}
    assert len(server.users()) == 1


def test_only_staff_of_the_tenant_can_download_the_report_as_json_lines(
    browser: Client, tenant: Tenant, database_connection: Connection, scim: EventStream
) -> None:
    user = make_user(connection=database_connection, email="anna@example.test")
    browser.post(_stream_page(scim, "compare"))
    job = _newest(tenant)
    place = reverse("admin:provisioning_synchronizationrow_report", args=(quote(job.pk),))
    answer = browser.get(place)
    lines = [orjson.loads(line) for line in b"".join(answer).splitlines()]
    assert lines[0]["outcomes"] == {"missing": 1}
    assert lines[1:] == [{"outcome": "missing", "user_id": user.user_id}]
    assert _signed_in(make_other_tenant()).get(place).status_code == 404


def test_staff_can_approve_many_deletions_on_the_page_of_the_stream(browser: Client, tenant: Tenant, scim: EventStream) -> None:
    browser.post(_stream_page(scim, "deletion-threshold"), {"threshold": "1", "window_minutes": "10"})
    guard = guard_of(scim)
    assert guard is not None
    assert (guard.threshold, guard.window_seconds) == (1, 600)
    EventStream.objects.of(tenant.pk).filter(pk=scim.pk).update(status="enabled")
    append_events(tenant, ["user:a", "user:b"], event_type="user.deleted")
    dispatch.dispatch_tenant(tenant.pk)
    scim.refresh_from_db()

    page = browser.get(reverse("admin:events_eventstream_change", args=(quote(scim.pk),))).content.decode()
    assert "2 deletions of users within 600 seconds exceed the threshold of 1" in page
    assert _stream_page(scim, "resume") not in page
    assert browser.post(_stream_page(scim, "allow-deletions")).status_code == 302
    scim.refresh_from_db()
    assert scim.held_since is None
    assert browser.post(_stream_page(scim, "allow-deletions")).status_code == 403


def test_an_empty_field_switches_the_deletion_guard_off(browser: Client, tenant: Tenant, scim: EventStream) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=scim.pk, threshold=5)
    browser.post(_stream_page(scim, "deletion-threshold"), {"threshold": "", "window_minutes": "60"})
    assert guard_of(scim) is None
