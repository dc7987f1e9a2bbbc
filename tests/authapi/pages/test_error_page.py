"""Error pages: the next step for the user, the link back to the application, and a reference. Support finds the same reference in the log
of the service."""

from __future__ import annotations

import logging
import re
from datetime import timedelta

import pytest
import time_machine
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from authapi.client_auth import clients
from authapi.models import Client, LoginTransaction, TenantSettings
from authapi.pages.application_link import application_link
from authapi.pages.tenant_page import tenant_page
from authapi.tenant_settings import remembered_settings
from identity.hosts import HostMatch
from tests.authapi.browser import Browser, Page
from tests.authapi.hosted_html import flaws
from tests.authapi.login.conftest import Login, set_client
from tests.factories.admin import new_tenant
from tests.factories.authapi import host_of
from tests.factories.sign_in import web_client

ELSEWHERE = "https://elsewhere.example.test/steal"


def way_back(page: Page) -> str:
    """Return the target of the only link of an error page, or the empty string."""
    found = re.findall(r'<a class="button[^"]*" href="([^"]*)"', page.text)
    assert len(found) <= 1
    return found[0] if found else ""


def reference(page: Page) -> str:
    found = re.search(r"<dt>Reference</dt>\s*<dd><code>([0-9A-F]{4}-[0-9A-F]{4})</code>", page.text)
    assert found, page.text
    return found.group(1)


def set_tenant(login: Login, **values: object) -> None:
    TenantSettings(tenant_id=login.tenant.pk, values=values).save()
    remembered_settings.clear()


# --- The link back --------------------------------------------------------------------------------------------------------------


def test_the_error_page_links_only_to_registered_urls_of_the_client(login: Login) -> None:
    page = login.ask(redirect_uri=ELSEWHERE)
    assert (page.status, way_back(page)) == (400, "https://app.example.test/")
    assert f'href="{ELSEWHERE}' not in page.text
    assert "Continue to Web shop" in page.text


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"initiate_login_uri": "https://app.example.test/login"}, "https://app.example.test/login?iss=http%3A%2F%2F{host}%2F"),
        ({"web_origins": ["https://*.example.test", "https://www.example.test"]}, "https://www.example.test/"),
        ({"initiate_login_uri": "javascript:alert(1)"}, "https://app.example.test/"),
        ({"initiate_login_uri": "http://app.example.test/login"}, "https://app.example.test/"),
    ],
)
def test_the_link_opens_the_most_suitable_page_of_the_application(login: Login, settings: dict[str, object], expected: str) -> None:
    set_client(login, settings=settings)
    assert way_back(login.ask(redirect_uri=ELSEWHERE)) == expected.replace("{host}", login.browser.host)


@pytest.mark.parametrize(
    ("addresses", "app_type"),
    [
        ("com.example.app:/callback", "native"),
        ("http://127.0.0.1:9000/callback", "native"),
        ("https://*.example.test/cb", "spa"),
        ("", "spa"),
    ],
)
def test_an_application_without_a_page_gets_the_link_of_the_tenant(login: Login, addresses: str, app_type: str) -> None:
    set_client(login, redirect_uris=addresses, app_type=app_type)
    assert application_link(login.client, host=host_of(login.tenant)) is None
    set_tenant(login, default_redirection_uri="https://www.example.test/start")
    link = application_link(login.client, host=host_of(login.tenant))
    assert link is not None
    assert link.address == "https://www.example.test/start"


def test_the_error_page_of_an_expired_login_links_to_its_application(login: Login) -> None:
    address = login.ask().location
    with time_machine.travel(timezone.now() + timedelta(hours=2), tick=False):
        page = login.browser.send("GET", address)
    assert (page.status, way_back(page)) == (400, "https://app.example.test/")
    assert "This login has expired" in page.text
    LoginTransaction.objects.of(login.tenant.pk).delete()
    assert way_back(login.browser.send("GET", address)) == ""


def test_the_error_page_of_a_login_in_another_browser_links_to_its_application(login: Login) -> None:
    page = Browser(login.tenant).send("GET", login.ask().location)
    assert (page.status, way_back(page)) == (400, "https://app.example.test/")


def test_the_error_page_for_a_revoked_or_foreign_client_has_no_link(login: Login) -> None:
    other, _ = web_client(new_tenant(), redirect_uris="https://other.example.test/callback")
    page = login.browser.get("/authorize", {"client_id": other.client_id, "redirect_uri": ELSEWHERE})
    assert (page.status, way_back(page)) == (400, "")
    assert "Unknown application" in page.text
    begun = login.ask().location
    Client.objects.of(login.tenant.pk).update(revoked_at=timezone.now())
    clients.clear()
    assert way_back(login.browser.send("GET", begun)) == ""
    assert way_back(login.ask(redirect_uri=ELSEWHERE)) == ""


@pytest.mark.parametrize("value", ["\x00", "x" * 5000, "1.", "0", "' or 1=1"])
def test_invalid_names_of_clients_and_logins_show_an_error_page(login: Login, value: str) -> None:
    for path, name in (("/authorize", "client_id"), ("/u/login", "state")):
        page = login.browser.get(path, {name: value})
        assert (page.status, way_back(page)) == (400, "")


# --- Information for support ------------------------------------------------------------------------------------------------------


def test_the_reference_on_the_page_is_logged_without_the_user_input(login: Login, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="authapi.pages.error_page"):
        page = login.ask(redirect_uri=f"{ELSEWHERE}?secret=canary")
    line = next(record.getMessage() for record in caplog.records if reference(page) in record.getMessage())
    assert "CALLBACK_MISMATCH" in line
    assert login.client.client_id in line
    assert "canary" not in line
    assert "<code>invalid_request</code>" in page.text


def test_an_error_page_designed_by_the_tenant_also_shows_the_reference(login: Login) -> None:
    set_tenant(login, error_page={"url": "https://errors.example.test/oops"})
    answer = login.ask(redirect_uri=ELSEWHERE)
    assert answer.location.startswith("https://errors.example.test/oops?")
    assert answer.answer["error"] == "invalid_request"
    assert re.fullmatch(r"[0-9A-F]{4}-[0-9A-F]{4}", answer.answer["tracking"])


def test_an_error_page_reports_an_unavailable_database(login: Login) -> None:
    @tenant_page("broken")
    def broken(request: HttpRequest, host: HostMatch) -> HttpResponse:
        raise OperationalError("password=canary")

    answer = broken(RequestFactory().get("/u/broken", headers={"host": login.browser.host}))
    page = Page(answer.status_code, {name.lower(): value for name, value in answer.items()}, [], answer.content)
    assert (page.status, page.headers["retry-after"]) == (503, "2")
    assert "The service is not available" in page.text
    assert "canary" not in page.text
    assert flaws(page.body.decode(), page.headers) == []
    assert reference(page)
