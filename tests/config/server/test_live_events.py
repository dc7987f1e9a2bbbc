"""The stream of the live page, in real web processes: which sessions may open the stream, which events it has, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from events.stream.operating.connections import OpenConnection, disconnect, open_connections
from events.stream.staff_admission import WATCHERS_PER_TENANT
from identity.models import Staff, Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff, new_tenant

PLATFORM = "localhost"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    times = {"EVENTS_HEARTBEAT_SECONDS": "0.5", "EVENTS_MAX_CONNECTIONS_PER_TENANT": "1"}
    with django_db_blocker.unblock(), web_process("uvicorn", **times) as process:
        yield process


def watch(web: WebProcess, tenant: Tenant, browser: Client | None, **headers: str) -> Subscriber:
    """Request the stream as the page does in this browser."""
    session = browser.cookies[settings.SESSION_COOKIE_NAME].value if browser else ""
    sent = {"Host": PLATFORM, "Sec-Fetch-Site": "same-origin", "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"} | headers
    query = sent.pop("query", "")
    return Subscriber(web.address, f"/admin/events/live/{tenant.pk}/stream", headers=sent, query=query)


def connections_of(tenant: Tenant) -> list[OpenConnection]:
    return open_connections(tenant.pk).connections


def test_an_event_arrives_with_the_same_bytes_that_clients_get(web: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, web.address)
    with watch(web, tenant, browser_of(new_staff(tenant))) as live, target.subscribe() as client:
        live.opened()
        client.opened()
        target.write("user.created")
        [seen], [sent] = live.events(1), client.events(1)

    assert (seen.event, seen.id, seen.data) == (sent.event, sent.id, sent.data)
    assert live.headers["content-type"].startswith("text/event-stream")
    assert live.headers["cache-control"] == "no-store, no-transform"


def test_no_event_of_another_tenant_arrives(web: WebProcess, tenant: Tenant) -> None:
    mine, other = make_target(tenant, web.address), make_target(new_tenant(), web.address)
    with watch(web, tenant, browser_of(new_staff(tenant))) as live:
        live.opened()
        other.write("user.deleted", "user.deleted")
        [own] = mine.write("user.created")
        [seen] = live.events(1)
    assert seen.message["event"]["id"] == own
    assert other.tenant.pk.encode() not in live.body


def test_the_live_page_can_use_the_type_filter_and_the_last_event_id_like_clients(web: WebProcess, tenant: Tenant) -> None:
    target, browser = make_target(tenant, web.address), browser_of(new_staff(tenant))
    with watch(web, tenant, browser) as live:
        start = live.opened().id
    missed = target.write("user.created", "user.updated", "user.created")
    assert start is not None
    headers: dict[str, Any] = {"Last-Event-ID": start, "query": "event_type=user.created"}
    with watch(web, tenant, browser, **headers) as again:
        again.opened()
        assert [block.message["event"]["id"] for block in again.events(2)] == [missed[0], missed[2]]


def test_live_pages_have_their_own_limit_and_use_no_slot_of_a_client(web: WebProcess, tenant: Tenant) -> None:
    browser, target = browser_of(new_staff(tenant)), make_target(tenant, web.address)
    pages = [watch(web, tenant, browser) for _ in range(WATCHERS_PER_TENANT)]
    for page in pages:
        page.opened()
    with target.subscribe() as client:
        client.opened()
        refused = watch(web, tenant, browser)
        assert (refused.status, refused.document()["errorCode"]) == (403, "connection_limit")
        assert len(connections_of(tenant)) == WATCHERS_PER_TENANT + 1
    for page in pages:
        page.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "{tenant}.example.test"}, 404),
        ({"Host": "elsewhere.example.test"}, 404),
        ({"Cookie": ""}, 401),
        ({"Cookie": f"{settings.SESSION_COOKIE_NAME}=nothing"}, 401),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"query": "event_type=no.such.type"}, 400),
        ({"query": "tenant=other"}, 400),
        ({"Last-Event-ID": "forged"}, 400),
    ],
    ids=str,
)
def test_a_request_that_does_not_come_from_the_page_is_refused(
    web: WebProcess, tenant: Tenant, headers: dict[str, str], status: int
) -> None:
    filled = {name: value.format(tenant=tenant.pk) for name, value in headers.items()}
    refused = watch(web, tenant, browser_of(new_staff(tenant)), **filled)

    assert refused.status == status
    assert connections_of(tenant) == []


def test_the_stream_of_another_tenant_does_not_exist(web: WebProcess, tenant: Tenant) -> None:
    other = new_tenant()
    assert watch(web, other, browser_of(new_staff(tenant))).status == 404
    assert watch(web, tenant, browser_of(new_staff(other))).status == 404

    operator = browser_of(new_staff(None))
    assert watch(web, tenant, operator).status == 404
    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    assert watch(web, other, operator).status == 404
    with watch(web, tenant, operator) as live:
        live.opened()


def test_staff_of_a_suspended_tenant_are_refused_and_so_are_bearer_tokens(web: WebProcess, tenant: Tenant) -> None:
    browser, target = browser_of(new_staff(tenant)), make_target(tenant, web.address)
    bearer = {"Cookie": "", "Authorization": f"Bearer {target.token()}"}
    assert watch(web, tenant, browser, **bearer).status == 401

    Tenant.objects.filter(pk=tenant.pk).update(status=Tenant.Status.SUSPENDED)
    assert watch(web, tenant, browser).status == 401


def sign_out(browser: Client, _staff: Staff) -> None:
    browser.post(reverse("admin:logout"))


def switch_off(_browser: Client, staff: Staff) -> None:
    Staff.objects.filter(pk=staff.pk).update(is_active=False)


def set_password(_browser: Client, staff: Staff) -> None:
    staff.set_password("another-long-password-3")
    staff.save()


def switch_tenant(browser: Client, _staff: Staff) -> None:
    browser.post(reverse("admin:choose_tenant"), {"tenant": new_tenant().pk})


@pytest.mark.parametrize("lose", [sign_out, switch_off, set_password, switch_tenant], ids=lambda lose: lose.__name__)
def test_the_stream_ends_soon_after_the_permission_ends(web: WebProcess, tenant: Tenant, lose: Any) -> None:
    staff = new_staff(None)
    browser = browser_of(staff)
    browser.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    with watch(web, tenant, browser) as live:
        live.opened()
        lose(browser, staff)
        *_, last = live.blocks(within=5.0)
        assert last.event == "error"
        assert "session" in last.message["error"]["message"]
        assert live.ended_cleanly


def test_streams_of_clients_continue_when_staff_with_a_live_page_sign_out(web: WebProcess, tenant: Tenant) -> None:
    target, browser = make_target(tenant, web.address), browser_of(new_staff(tenant))
    with target.subscribe() as client, watch(web, tenant, browser) as live:
        client.opened()
        live.opened()
        browser.post(reverse("admin:logout"))
        list(live.blocks(within=5.0))
        target.write("user.created")
        assert [block.event for block in client.events(1)] == ["user.created"]


def test_a_live_page_is_listed_and_can_be_disconnected(web: WebProcess, tenant: Tenant) -> None:
    staff = new_staff(tenant)
    with watch(web, tenant, browser_of(staff)) as live:
        live.opened()
        eventually(lambda: len(connections_of(tenant)) == 1)
        [shown] = connections_of(tenant)
        assert shown.client_id == f"staff {staff.email}"
        assert disconnect(tenant.pk, shown.connection_id)
        *_, last = live.blocks()
        assert last.event == "error"


def test_open_live_pages_do_not_count_against_the_limit_of_concurrent_requests(tenant: Tenant) -> None:
    browser = browser_of(new_staff(tenant))
    with web_process("uvicorn", WEB_SYNC_LIMIT="1") as web:
        pages = [watch(web, tenant, browser) for _ in range(4)]
        for page in pages:
            page.opened()
        session = browser.cookies[settings.SESSION_COOKIE_NAME].value
        answer = Subscriber(web.address, "/admin/", headers={"Host": PLATFORM, "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"})
        assert answer.status == 200
        for page in pages:
            page.close()


@pytest.mark.parametrize(("role", "status"), [("app", 404), ("stream", 200)])
def test_only_a_process_that_serves_streams_serves_the_stream_of_the_live_page(tenant: Tenant, role: str, status: int) -> None:
    with web_process("uvicorn", WEB_ROLE=role) as web, watch(web, tenant, browser_of(new_staff(tenant))) as live:
        assert live.status == status


def test_the_url_of_the_stream_allows_only_get(web: WebProcess, tenant: Tenant) -> None:
    target: Target = make_target(tenant, web.address)
    session = browser_of(new_staff(tenant)).cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"Host": PLATFORM, "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}", "Content-Length": "0"}
    refused = Subscriber(target.address, f"/admin/events/live/{tenant.pk}/stream", method="POST", headers=headers)
    assert (refused.status, refused.headers["allow"]) == (405, "GET")
