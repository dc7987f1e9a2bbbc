"""Headers of answers with status 429: the limit that was reached, zero remaining requests, and the time of the next attempt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
import time_machine

from authapi.accounts import password_login, password_reset
from authapi.edge.buckets import Bucket
from authapi.login import parked
from authapi.models import Client
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.accounts.logging_in import protect, suspect
from tests.authapi.asgi_client import FORM, Received, send
from tests.authapi.browser import Page
from tests.authapi.login.conftest import Login
from tests.factories.sign_in import PASSWORD, people, person, web_client

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
REALM_GRANT = "http://auth0.com/oauth/grant-type/password-realm"


@pytest.fixture(autouse=True)
def _noon() -> Iterator[None]:
    with time_machine.travel(BEGIN, tick=False):
        yield


def post(tenant_id: str, path: str, form: dict[str, str]) -> Received:
    body = urlencode(form).encode()
    return send(HOT_ENDPOINTS[path], "POST", host=f"{tenant_id}.example.test", headers={"Content-Type": FORM}, chunks=(body,))


def told(answer: Received | Page) -> tuple[int, str, str, str]:
    """Return the status, the limit, the remaining requests, and the seconds to wait."""
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "retry-after")
    limit, remaining, seconds = (answer.headers[name] for name in names)
    assert int(answer.headers["x-ratelimit-reset"]) == int(BEGIN.timestamp()) + int(seconds)
    return answer.status, limit, remaining, seconds


@pytest.fixture(params=["confidential", "public"])
def password_form(request: pytest.FixtureRequest, tenant: Tenant) -> dict[str, str]:
    """Return the form fields of a token request with the grant `password-realm`."""
    is_public = request.param == "public"
    more = {"token_endpoint_auth_method": Client.AuthMethod.NONE} if is_public else {}
    client, secret = web_client(tenant, grant_types=["password", REALM_GRANT], **more)
    person(people(tenant, client))
    proof = {} if is_public else {"client_secret": secret}
    sent = {"client_id": client.client_id, "grant_type": REALM_GRANT, "realm": "people", "username": "ada@example.test"}
    return {**sent, **proof, "password": PASSWORD}


# --- Endpoints without Django ----------------------------------------------------------------------------------------------------


def test_too_many_password_resets_of_one_account_show_the_limit_per_account(client: Client, connection: object) -> None:
    asked = {"connection": "people", "email": "ada@example.test"}
    answers = [post(client.tenant_id, "/dbconnections/change_password", asked) for _ in range(11)]
    assert told(answers[-1]) == (429, "10", "0", "60")


def test_too_many_password_resets_from_one_ip_address_show_the_limit_per_ip_address(
    client: Client, connection: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_reset, "RESETS_OF_ADDRESS", Bucket("two-resets", 2, 12.0))
    for number in range(3):
        answer = post(client.tenant_id, "/dbconnections/change_password", {"connection": "people", "email": f"n{number}@example.test"})
    assert told(answer) == (429, "2", "0", "12")


def test_too_many_sign_ups_from_one_ip_address_show_the_limit_of_sign_ups(client: Client, connection: object) -> None:
    suspect(client.tenant_id, stage={"pre-user-registration": {"max_attempts": 1, "rate": 60_000}})
    for number in range(2):
        form = {"client_id": client.client_id, "connection": "people", "email": f"n{number}@example.test", "password": PASSWORD}
        answer = post(client.tenant_id, "/dbconnections/signup", form)
    assert told(answer) == (429, "1", "0", "60")


def test_too_many_logins_at_the_token_endpoint_show_the_limit_of_logins(
    tenant: Tenant, password_form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_login, "LOGINS", Bucket("one-login", 1, 6.0))
    answers = [post(tenant.pk, "/oauth/token", password_form) for _ in range(2)]
    assert answers[0].status == 200
    assert told(answers[1]) == (429, "1", "0", "6")


def test_the_token_endpoint_tells_a_suspicious_ip_address_when_to_try_again(tenant: Tenant, password_form: dict[str, str]) -> None:
    suspect(tenant.pk, stage={"pre-login": {"max_attempts": 1, "rate": 90_000}})
    assert post(tenant.pk, "/oauth/token", {**password_form, "password": "wrong"}).status == 403
    assert told(post(tenant.pk, "/oauth/token", password_form)) == (429, "1", "0", "90")


def test_a_blocked_account_at_the_token_endpoint_gets_zero_remaining_attempts(tenant: Tenant, password_form: dict[str, str]) -> None:
    protect(tenant.pk, max_attempts=1)
    assert post(tenant.pk, "/oauth/token", {**password_form, "password": "wrong"}).status == 403
    status, _, remaining, seconds = told(post(tenant.pk, "/oauth/token", password_form))
    assert (status, remaining) == (429, "0")
    assert int(seconds) >= 1


# --- Pages ------------------------------------------------------------------------------------------------------------


def opened(login: Login, words: str) -> Page:
    """Start a login, and open the page behind the link with this text."""
    page = login.browser.follow(login.ask())
    found = re.search(rf'href="([^"]+)"[^>]*>\s*{words}', page.text)
    assert found, page.text
    return login.browser.send("GET", found[1])


def test_a_login_page_that_refuses_a_request_shows_the_limit_of_logins(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_login, "LOGINS", Bucket("no-login", 1, 6.0))
    login.log_in(login.ask(), password="wrong")
    assert told(login.log_in(login.ask())) == (429, "1", "0", "6")


def test_a_login_page_of_a_blocked_account_shows_zero_remaining_attempts(login: Login) -> None:
    protect(login.tenant.pk, max_attempts=1)
    login.log_in(login.ask(), password="wrong")
    status, _, remaining, seconds = told(login.log_in(login.ask()))
    assert (status, remaining) == (429, "0")
    assert int(seconds) >= 1


def test_a_sign_up_page_that_refuses_a_request_shows_the_limit_of_sign_ups(login: Login) -> None:
    suspect(login.tenant.pk, stage={"pre-user-registration": {"max_attempts": 1, "rate": 60_000}})
    page = opened(login, "Sign up")
    for email in ("", "new@example.test"):
        answer = login.browser.post("/u/signup", {**page.fields(), "email": email, "password": PASSWORD})
    assert told(answer) == (429, "1", "0", "60")


def test_a_reset_page_that_refuses_a_request_shows_the_limit_of_resets(login: Login) -> None:
    page = opened(login, "Forgot password\\?")
    for _ in range(11):
        answer = login.browser.post("/u/reset-password/request", {**page.fields(), "username": "ada@example.test"})
    assert told(answer) == (429, "10", "0", "60")


def test_a_login_over_the_limit_of_stored_login_requests_shows_the_limit_in_kib(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked, "PARKED_BY_ADDRESS", Bucket("four-kib", 4, 15.0))
    assert login.ask().status == 302
    assert told(login.ask(state="x" * 3500)) == (429, "4", "0", "60")
