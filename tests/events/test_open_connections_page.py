"""The page of open connections, with a real web process: the open event streams of clients, disconnecting, and test events."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from events.stream.operating.connections import open_connections
from identity.models import AuditEntry, Tenant
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff, new_tenant

PAGE = "admin:events_connections"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn", EVENTS_HEARTBEAT_SECONDS="0.5") as process:
        yield process


@pytest.fixture
def target(web: WebProcess, tenant: Tenant) -> Target:
    return make_target(tenant, web.address)


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def shown_to(browser: Client) -> str:
    return " ".join(browser.get(reverse(PAGE)).content.decode().split())


def only_connection(tenant: Tenant) -> str:
    eventually(lambda: len(open_connections(tenant.pk).connections) == 1)
    return open_connections(tenant.pk).connections[0].connection_id


def send_to(browser: Client, client_id: str) -> str:
    answer = browser.post(reverse(f"{PAGE}_canary"), {"client": client_id}, follow=True)
    assert answer.status_code == 200
    return " ".join(str(message) for message in answer.context["messages"])


def test_the_page_without_open_streams_explains_how_to_open_a_stream(browser: Client, tenant: Tenant) -> None:
    page = shown_to(browser)

    assert "No open streams" in page
    assert "curl -N -H" in page
    assert f"http://{tenant.pk}.example.test/api/v2/events" in page
    assert "read:events" in page


def test_the_page_shows_the_details_of_an_open_stream(browser: Client, target: Target) -> None:
    with target.subscribe({"event_type": ["user.created", "user.deleted"]}) as stream:
        stream.opened()
        target.write("user.created", "user.updated")
        stream.events(1)
        eventually(lambda: "2 of 2" in shown_to(browser))
        page = shown_to(browser)

    assert target.client.name in page
    assert "user.<wbr>created, user.<wbr>deleted" in page
    assert "127.0.0.1" in page
    assert "bytes" in page.replace("\xa0", " ")
    assert reverse("admin:authapi_client_change", args=(target.client.pk,)) in page


def test_closing_a_stream_requires_a_confirmation_and_adds_an_audit_entry(
    browser: Client, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        name = only_connection(target.tenant)
        place = reverse(f"{PAGE}_disconnect", args=(name,))
        asked = browser.get(place)
        assert target.client.name in asked.content.decode()
        assert open_connections(target.tenant.pk).connections

        with caplog.at_level(logging.INFO, logger="events.admin.open_connections"):
            answer = browser.post(place, follow=True)
        *_, last = stream.blocks()
        assert (last.message["error"]["code"], last.message["error"]["offset"]) == ("connection_timeout", start)

    assert "is closed" in answer.content.decode()
    noted = AuditEntry.objects.get(tenant_id=target.tenant.pk)
    assert name in noted.act
    assert noted.object_id == str(target.client.pk)
    assert [name in record.getMessage() and target.client.client_id in record.getMessage() for record in caplog.records] == [True]
    assert "No open streams" in shown_to(browser)


def test_closing_a_stream_that_has_already_ended_says_so_and_adds_no_audit_entry(browser: Client, target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        place = reverse(f"{PAGE}_disconnect", args=(only_connection(target.tenant),))
    eventually(lambda: not open_connections(target.tenant.pk).connections)

    assert browser.get(place).status_code == 404
    assert "already ended" in browser.post(place, follow=True).content.decode()
    assert not AuditEntry.objects.filter(tenant_id=target.tenant.pk).exists()


def test_staff_cannot_close_or_test_a_stream_of_another_tenant(browser: Client, web: WebProcess) -> None:
    other = make_target(new_tenant(), web.address)
    with other.subscribe() as stream:
        stream.opened()
        place = reverse(f"{PAGE}_disconnect", args=(only_connection(other.tenant),))
        assert other.client.name not in shown_to(browser)
        assert browser.get(place).status_code == 404
        assert "already ended" in browser.post(place, follow=True).content.decode()
        assert browser.post(reverse(f"{PAGE}_canary"), {"client": other.client.client_id}).status_code == 404
        # A test event would have arrived before this event.
        other.write("user.created")
        assert [block.event for block in stream.events(1)] == ["user.created"]
        assert b"canary" not in stream.body


def test_a_test_event_reports_its_latency_on_each_stream(browser: Client, target: Target) -> None:
    with target.subscribe() as one, target.subscribe({"event_type": ["user.deleted"]}) as two:
        one.opened()
        two.opened()
        eventually(lambda: len(open_connections(target.tenant.pk).connections) == 2)
        said = send_to(browser, target.client.client_id)
        assert one.events(1)[0].message["event"]["data"]["canary"]
        assert two.events(1)[0].event == "user.deleted"

    assert "reached 2 of 2 open streams" in said
    assert said.count(" ms") == 2


def test_a_test_event_without_an_open_stream_is_reported(browser: Client, target: Target) -> None:
    assert "no open stream" in send_to(browser, target.client.client_id)


def test_a_test_event_to_a_client_that_does_not_read_is_reported_as_waiting(browser: Client, target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    for _ in range(6):
        target.write(*["user.updated"] * 50, padding=20_000)
    with target.subscribe({"from": start}, receive_buffer=4096):
        eventually(lambda: "for " in shown_to(browser))
        assert "reached 0 of 1" in send_to(browser, target.client.client_id)


def test_every_action_requires_the_csrf_token_of_its_form(target: Target) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    strict.force_login(new_staff(target.tenant))
    with target.subscribe() as stream:
        stream.opened()
        name = only_connection(target.tenant)
        assert strict.post(reverse(f"{PAGE}_disconnect", args=(name,))).status_code == 403
        assert strict.post(reverse(f"{PAGE}_canary"), {"client": target.client.client_id}).status_code == 403
        assert strict.get(reverse(f"{PAGE}_canary")).status_code == 405
        target.write("user.created")
        assert [block.event for block in stream.events(1)] == ["user.created"]


def test_markup_in_a_client_name_is_escaped(browser: Client, target: Target) -> None:
    target.client.name = "<script>alert(1)</script>"
    target.client.save()
    with target.subscribe() as stream:
        stream.opened()
        name = only_connection(target.tenant)
        pages = [shown_to(browser), browser.get(reverse(f"{PAGE}_disconnect", args=(name,))).content.decode()]
    assert not [page for page in pages if "<script>alert(1)" in page]
