"""Requests without a credential: which budget a request is charged to, and whose requests are served during a flood.

A budget is the rate limit of one browser, of one IP address, or of all anonymous callers of a tenant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine

from authapi.edge import throttling
from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import browser_figure
from authapi.login import parked
from authapi.models import LoginTransaction
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import get
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login
from tests.factories.sign_in import people, person, web_client

NOON = 1_935_489_600
PAGE = "/u/logged-out"


@pytest.fixture(autouse=True)
def _noon(settings: Any) -> Iterator[None]:
    """Stop the clock, and allow five pages to each IP address and two more pages to all anonymous callers of the tenant together."""
    settings.ADDRESS_RATE_BURST, settings.ADDRESS_RATE_PER_SECOND, settings.ANONYMOUS_RATE_PER_SECOND = 5, 1, 1
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def second_tenant(tenant: Tenant) -> Tenant:
    return create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")


def pages(browser: Browser, count: int) -> list[Page]:
    return [browser.get(PAGE) for _ in range(count)]


def statuses(answers: list[Page]) -> list[int]:
    return [answer.status for answer in answers]


def test_an_ip_address_uses_the_shared_budget_only_after_its_own(tenant: Tenant) -> None:
    answers = pages(Browser(tenant), 8)
    assert statuses(answers) == [200] * 7 + [429]
    # The headers describe the budget to which the request was charged.
    assert [(answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]) for answer in answers[3:]] == [
        ("5", "1"),
        ("5", "0"),
        ("2", "1"),
        ("2", "0"),
        ("2", "0"),
    ]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "Too many requests." in answers[-1].text


def test_an_ip_address_within_its_budget_is_served_during_a_flood(tenant: Tenant) -> None:
    assert 429 in statuses(pages(Browser(tenant), 10))
    assert statuses(pages(Browser(tenant, address="192.0.2.9"), 6)) == [200] * 5 + [429]


def test_pages_of_one_tenant_do_not_use_the_budget_of_another_tenant(tenant: Tenant, second_tenant: Tenant) -> None:
    pages(Browser(tenant), 10)
    assert statuses(pages(Browser(second_tenant), 5)) == [200] * 5


def test_a_known_browser_is_served_while_its_ip_address_floods(login: Login) -> None:
    with_login = login.browser
    login.begin_session()
    assert 429 in statuses(pages(Browser(login.tenant), 10))
    answer = with_login.get(PAGE)
    assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, str(browser_figure().burst))


def test_all_browsers_of_one_account_share_one_budget(login: Login, settings: Any) -> None:
    settings.ADDRESS_RATE_BURST = 1000
    person(login.connection, email="grace@example.test")
    browsers = [Browser(login.tenant) for _ in range(3)]
    for browser, email in zip(browsers, ("ada@example.test", "ada@example.test", "grace@example.test"), strict=True):
        visit = Login(login.tenant, login.client, login.connection, login.user, browser)
        assert "code" in visit.log_in(visit.ask(), identifier=email).answer
    left = [int(browser.get(PAGE).headers["x-ratelimit-remaining"]) for browser in browsers]
    assert left == [browser_figure().burst - 1, browser_figure().burst - 2, browser_figure().burst - 1]


def test_a_browser_uses_the_budget_of_the_account_that_logged_in_last(login: Login, settings: Any) -> None:
    settings.ADDRESS_RATE_BURST = 1000
    person(login.connection, email="grace@example.test")
    login.begin_session()
    first = login.browser.cookies["known"]
    login.log_in(login.ask(prompt="login"), identifier="grace@example.test")
    assert login.browser.cookies["known"].partition(":")[0] != first.partition(":")[0]
    assert login.user.user_id not in first


@pytest.mark.parametrize("cookie", ["known=made-up", "known=abc:1vZ:forged", "browser=fresh", "session=fresh"])
def test_a_browser_with_an_unknown_cookie_has_no_budget_of_its_own(tenant: Tenant, cookie: str) -> None:
    pages(Browser(tenant), 10)
    assert Browser(tenant).get(PAGE, cookie=cookie).status == 429


def test_the_known_browser_cookie_of_one_tenant_is_not_accepted_by_another_tenant(login: Login, second_tenant: Tenant) -> None:
    login.begin_session()
    pages(Browser(second_tenant), 10)
    stranger = Browser(second_tenant, cookies=dict(login.browser.cookies))
    assert stranger.get(PAGE).status == 429


def test_requests_for_published_keys_are_charged_to_the_ip_address(tenant: Tenant) -> None:
    answers = [get(tenant, "/.well-known/jwks.json") for _ in range(8)]
    assert [answer.status for answer in answers] == [200] * 7 + [429]
    assert answers[-1].json()["error"] == "too_many_requests"


def test_anonymous_requests_do_not_count_against_the_rate_limits_of_endpoints(tenant: Tenant) -> None:
    for _ in range(10):
        get(tenant, "/.well-known/jwks.json")
    pages(Browser(tenant), 3)
    for endpoint in ("jwks", "discovery", "token", "authorize", "management", "logout"):
        assert throttling.hit(tenant.pk, endpoint).remaining == 199


def test_requests_for_the_schema_are_charged_to_the_ip_address(tenant: Tenant) -> None:
    browser = Browser(tenant)
    answers = [browser.get("/api/v2/openapi.json") for _ in range(8)]
    assert statuses(answers) == [200] * 7 + [429]
    assert throttling.hit(tenant.pk, "management").remaining == 199


def test_requests_for_exported_files_are_charged_to_the_ip_address(tenant: Tenant) -> None:
    browser = Browser(tenant)
    answers = [browser.get("/exports/job_0123456789abcdef.json.gz?signature=made-up") for _ in range(8)]
    assert statuses(answers) == [404] * 7 + [429]
    assert [(answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]) for answer in answers[4:6]] == [
        ("5", "0"),
        ("2", "1"),
    ]
    # Programs open these links, so the refusal is JSON.
    assert (answers[-1].headers["content-type"], json.loads(answers[-1].body)["statusCode"]) == ("application/json; charset=utf-8", 429)
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_pages_are_served_and_limited_without_redis(tenant: Tenant, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    throttling.counters.cache_clear()
    assert statuses(pages(Browser(tenant), 8)) == [200] * 7 + [429]


def test_no_page_is_refused_while_rates_are_switched_off(tenant: Tenant, settings: Any) -> None:
    settings.RATE_LIMITS_ENABLED = False
    answers = pages(Browser(tenant), 12)
    assert set(statuses(answers)) == {200}
    assert "x-ratelimit-limit" in answers[0].headers


def test_the_stored_login_requests_of_one_ip_address_are_limited_in_bytes(
    login: Login, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ADDRESS_RATE_BURST = 1000
    monkeypatch.setattr(parked, "PARKED_BY_ADDRESS", Bucket("parked-by-address", 24, 150.0))
    large = {"state": "x" * 10_000}
    answers = [login.ask(**large) for _ in range(4)]
    assert statuses(answers) == [302, 302, 429, 429]
    assert "location" not in answers[-1].headers
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert LoginTransaction.objects.of(login.tenant.pk).count() == 2
    # The rest of the limit in bytes is enough for a login request of ordinary size. Another IP address has a limit of its own.
    assert login.ask().status == 302
    login.browser.address = "192.0.2.9"
    assert login.ask(**large).status == 302


def test_stored_login_requests_without_a_client_address_are_limited_per_tenant(
    login: Login, second_tenant: Tenant, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ANONYMOUS_RATE_PER_SECOND, settings.TRUSTED_PROXIES = 1000, ["192.0.2.0/24"]
    monkeypatch.setattr(parked, "PARKED_BY_HIDDEN", Bucket("parked-by-hidden", 24, 150.0))
    large = {"state": "x" * 10_000}
    assert statuses([login.ask(**large) for _ in range(3)]) == [302, 302, 429]
    assert LoginTransaction.objects.of(login.tenant.pk).count() == 2
    # A request whose IP address is known counts against the limit of that IP address. Each tenant has its own limit for the other requests.
    login.browser.address = "198.51.100.7"
    assert login.ask(**large).status == 302
    client, _ = web_client(second_tenant)
    other = Login(second_tenant, client, login.connection, login.user, Browser(second_tenant))
    people(second_tenant, client)
    assert other.ask(**large).status == 302


def test_a_known_browser_can_start_a_login_when_its_ip_address_cannot(login: Login, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.ADDRESS_RATE_BURST = 1000
    login.begin_session()
    monkeypatch.setattr(parked, "PARKED_BY_ADDRESS", Bucket("parked-by-address", 1, 3600.0))
    stranger = Login(login.tenant, login.client, login.connection, login.user, Browser(login.tenant))
    assert statuses([stranger.ask(), stranger.ask()]) == [302, 429]
    assert login.ask(prompt="login").status == 302
