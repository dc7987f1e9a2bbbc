"""`/co/authenticate` and its ticket: which requests get a ticket, and for which browser, client and page the ticket is valid."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone

from authapi.login.cookies import BROWSER, cookie_name
from authapi.models import LoginTicket, Session, SignIn
from authapi.protocols.legacy.login_tickets import redeemed, waiting_ticket
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views.legacy_endpoints import LEGACY_ENDPOINTS
from foundation.tenancy import tenant_bound
from identity.services.connections import update_connection
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, send
from tests.authapi.browser import Browser, Page
from tests.authapi.memory import forget_all
from tests.authapi.protocols.legacy.conftest import CALLBACK, ORIGIN, OldClient, change, refusal
from tests.factories.sign_in import web_client

INVALID = {"error": "access_denied", "error_description": "The login ticket is invalid, used, expired, or from another browser or page."}


def cookie_from(answer: Received) -> str:
    """Return the value of the browser's cookie that an answer sets."""
    found = re.match(rf"{cookie_name(BROWSER)}=([^;]+)", answer.headers["set-cookie"])
    assert found is not None
    return found.group(1)


def arrive(old: OldClient, ticket: str, *, browser: Browser | None = None, headers: dict[str, str] | None = None, **changes: Any) -> Page:
    """Go to `/authorize` with a ticket, as auth0-js redirects the browser."""
    asked = {
        "client_id": old.client.client_id,
        "response_type": "token id_token",
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "state": "st",
        "nonce": "no",
        "realm": old.connection.name,
        "login_ticket": ticket,
    }
    query = {name: value for name, value in {**asked, **changes}.items() if value is not None}
    return (browser or old.browser).get("/authorize", query, **(headers or {}))


def ticket_in(old: OldClient, browser: Browser | None = None) -> str:
    """Log in with the script of a page. The browser keeps the cookie."""
    answer = old.authenticate()
    assert answer.status == 200, answer.body
    (browser or old.browser).cookies[cookie_name(BROWSER)] = cookie_from(answer)
    return str(answer.json()["login_ticket"])


def told(page: Page) -> dict[str, str]:
    return {name: value for name, value in page.answer.items() if name in ("error", "error_description")}


# --- Getting a ticket -------------------------------------------------------------------------------------------------


def test_a_script_of_the_application_gets_a_ticket_and_can_read_it(old: OldClient) -> None:
    answer = old.authenticate()
    assert answer.json().keys() == {"login_ticket", "co_id", "co_verifier"}
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["vary"] == "Origin"
    assert (answer.headers["cache-control"], "HttpOnly" in answer.headers["set-cookie"]) == ("no-store", True)


def test_the_preflight_response_allows_cookies(old: OldClient) -> None:
    answer = send(LEGACY_ENDPOINTS["/co/authenticate"], "OPTIONS", host=old.host, headers={"Origin": ORIGIN})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, ORIGIN)
    assert answer.headers["access-control-allow-credentials"] == "true"


def test_tickets_and_cookies_are_stored_only_as_digests(old: OldClient) -> None:
    answer = old.authenticate()
    row = LoginTicket.objects.of(old.tenant.pk).values().get()
    secrets = (answer.json()["login_ticket"], answer.json()["co_verifier"], cookie_from(answer))
    assert not any(secret in str(row) for secret in secrets)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (None, "The request has no Origin header: this endpoint answers only scripts of web pages."),
        ("https://evil.example", "The origin https://evil.example is not among the client's allowed origins."),
        (
            "https://app.example.test.evil.x",
            "The origin https://app.example.test.evil.x is not among the client's allowed origins.",
        ),
        ("null", "The origin null is not among the client's allowed origins."),
    ],
)
def test_a_page_of_another_origin_gets_no_ticket_and_no_cookie(old: OldClient, origin: str | None, words: str) -> None:
    answer = old.authenticate(origin=origin)
    assert refusal(answer) == (403, "access_denied", words)
    assert "set-cookie" not in answer.headers
    assert answer.headers.get("access-control-allow-credentials") is None
    assert not SignIn.objects.of(old.tenant.pk).exists()


def test_a_request_that_a_form_of_any_page_could_send_is_refused(old: OldClient) -> None:
    answer = old.ask("/co/authenticate", {}, origin=ORIGIN, Content_Type="application/x-www-form-urlencoded")
    assert refusal(answer) == (400, "invalid_request", "The content type must be application/json.")


def test_the_script_can_read_why_a_client_without_cross_origin_login_is_refused(old: OldClient) -> None:
    old.set(settings={"cross_origin_authentication": False})
    answer = old.authenticate()
    assert refusal(answer) == (403, "unauthorized_client", "Cross-origin login is off for this client.")
    assert answer.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("changes", [{"password": "wrong"}, {"username": "nobody@example.test"}])
def test_a_wrong_password_and_an_unknown_user_get_the_same_refusal(old: OldClient, changes: dict[str, str]) -> None:
    answer = old.authenticate(**changes)
    assert refusal(answer) == (401, "access_denied", "Wrong email or password.")
    assert (answer.headers["access-control-allow-origin"], "set-cookie" in answer.headers) == (ORIGIN, False)


def test_a_blocked_user_gets_no_ticket(old: OldClient) -> None:
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert refusal(old.authenticate()) == (401, "unauthorized", "user is blocked")


def test_failures_at_co_authenticate_block_the_account(old: OldClient) -> None:
    for _ in range(10):
        old.authenticate(password="wrong")
    answer = old.authenticate()
    assert refusal(answer)[:2] == (429, "too_many_attempts")
    assert answer.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("missing", ["client_id", "credential_type", "username", "password", "realm"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    left_out: dict[str, Any] = {missing: None}
    assert refusal(old.authenticate(**left_out)) == (400, "invalid_request", f"missing {missing} parameter")


def test_an_unknown_realm_and_an_unknown_credential_type_are_refused(old: OldClient) -> None:
    assert refusal(old.authenticate(realm="nowhere")) == (403, "access_denied", "Unknown or invalid realm")
    assert refusal(old.authenticate(credential_type="magic")) == (400, "invalid_request", "Unsupported credential_type: magic")


def test_a_request_without_a_realm_uses_the_default_directory(old: OldClient) -> None:
    assert refusal(old.authenticate(credential_type="password"))[:2] == (403, "access_denied")
    update_tenant_settings(tenant_id=old.tenant.pk, changes={"default_directory": old.connection.name})
    forget_all()
    assert old.authenticate(credential_type="password", realm=None).status == 200


# --- Using a ticket ---------------------------------------------------------------------------------------------------


def test_the_browser_of_the_ticket_is_logged_in_and_redirected_to_the_client(old: OldClient) -> None:
    page = arrive(old, ticket_in(old), headers={"referer": f"{ORIGIN}/"})
    assert page.location.startswith(f"{CALLBACK}#"), page.location
    assert page.answer["id_token"]
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    session = Session.objects.of(old.tenant.pk).get()
    assert (session.user_id, [method["name"] for method in session.methods]) == (old.user.pk, ["pwd"])


def test_a_ticket_is_accepted_in_silent_requests_in_a_frame(old: OldClient) -> None:
    page = arrive(old, ticket_in(old), response_mode="web_message", prompt="none")
    assert page.status == 200
    assert "access_token" in page.text


def test_a_ticket_is_accepted_once(old: OldClient) -> None:
    ticket = ticket_in(old)
    assert "id_token" in arrive(old, ticket).answer
    again = Browser(old.tenant, cookies={cookie_name(BROWSER): old.browser.cookies[cookie_name(BROWSER)]})
    assert told(arrive(old, ticket, browser=again)) == INVALID


def test_only_one_of_two_simultaneous_uses_of_a_ticket_succeeds(old: OldClient) -> None:
    # Both requests have read the row before one of them uses up the ticket.
    with tenant_bound(old.tenant.pk):
        row = waiting_ticket(old.client, ticket_in(old))
        assert row is not None
        assert redeemed(row) is not None
        assert redeemed(row) is None


def test_a_ticket_of_another_browser_is_refused(old: OldClient) -> None:
    # Login CSRF: the attacker logs in with the attacker's account, and redirects the victim's browser.
    ticket = ticket_in(old)
    victim = Browser(old.tenant)
    assert told(arrive(old, ticket, browser=victim)) == INVALID
    victim.cookies[cookie_name(BROWSER)] = "a-cookie-of-the-victim"
    assert told(arrive(old, ticket, browser=victim)) == INVALID
    assert not Session.objects.of(old.tenant.pk).exists()
    # The refusals did not use up the ticket.
    assert "id_token" in arrive(old, ticket).answer


@pytest.mark.parametrize("referer", ["https://evil.example/page", "https://app.example.test.evil.x/"])
def test_a_ticket_from_another_page_is_refused(old: OldClient, referer: str) -> None:
    assert told(arrive(old, ticket_in(old), headers={"referer": referer})) == INVALID


def test_a_ticket_is_refused_after_its_origin_was_removed_from_the_client(old: OldClient) -> None:
    ticket = ticket_in(old)
    old.set(settings={"web_origins": ["https://other.example.test"]}, redirect_uris="https://other.example.test/callback")
    assert told(arrive(old, ticket, redirect_uri="https://other.example.test/callback")) == INVALID


def test_a_ticket_of_another_client_is_refused(old: OldClient) -> None:
    settings = {"cross_origin_authentication": True, "web_origins": [ORIGIN]}
    other, _ = web_client(old.tenant, grant_types=["implicit"], redirect_uris=CALLBACK, settings=settings)
    enabled = [old.client.client_id, other.client_id]
    update_connection(tenant_id=old.tenant.pk, connection_id=old.connection.pk, changes={"enabled_clients": enabled})
    forget_all()
    assert told(arrive(old, ticket_in(old), client_id=other.client_id)) == INVALID


def test_a_ticket_of_another_tenant_is_refused(old: OldClient, second: OldClient) -> None:
    ticket = ticket_in(old)
    second.browser.cookies.update(old.browser.cookies)
    assert told(arrive(second, ticket)) == INVALID


def test_a_ticket_expires_after_two_minutes(old: OldClient) -> None:
    ticket = ticket_in(old)
    LoginTicket.objects.of(old.tenant.pk).update(expires_at=timezone.now())
    assert told(arrive(old, ticket)) == INVALID


def test_a_ticket_is_refused_after_its_user_was_blocked(old: OldClient) -> None:
    ticket = ticket_in(old)
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert told(arrive(old, ticket)) == INVALID


def test_a_ticket_is_refused_after_cross_origin_login_was_switched_off_for_the_client(old: OldClient) -> None:
    ticket = ticket_in(old)
    old.set(settings={"cross_origin_authentication": False})
    assert told(arrive(old, ticket))["error"] == "unauthorized_client"


def test_a_ticket_does_not_change_the_redirect_uri_of_the_answer(old: OldClient) -> None:
    page = arrive(old, ticket_in(old), redirect_uri="https://evil.example/callback")
    assert (page.status, "location" in page.headers) == (400, False)


def test_the_ticket_is_not_stored_with_the_request(old: OldClient) -> None:
    change(old.client, is_first_party=False)
    page = arrive(old, ticket := ticket_in(old))
    assert page.location.startswith("/u/consent")
    assert ticket not in page.location


# --- Browsers that block third-party cookies --------------------------------------------------------------------------


def verification(old: OldClient) -> tuple[Page, str]:
    """Go to `/authorize` without the cookie. Return the page that has the application's page in a frame, and the application's verifier."""
    old.set(settings={"cross_origin_loc": f"{ORIGIN}/verify"})
    answer = old.authenticate()
    page = arrive(old, answer.json()["login_ticket"])
    assert page.status == 200, page.text
    assert answer.json()["co_id"] in page.text
    return page, answer.json()["co_verifier"]


def test_the_verifier_of_the_page_authenticates_the_browser(old: OldClient) -> None:
    page, verifier = verification(old)
    assert f'data-frame="{ORIGIN}/verify#origin=http://{old.host}"' in page.text
    assert f"frame-src {ORIGIN};" in page.headers["content-security-policy"]
    done = old.browser.submit(page, verifier=verifier)
    assert "id_token" in done.answer


@pytest.mark.parametrize("verifier", ["", "made-up"])
def test_a_browser_without_the_verifier_is_not_logged_in(old: OldClient, verifier: str) -> None:
    page, _ = verification(old)
    assert told(old.browser.submit(page, verifier=verifier)) == INVALID
    assert not Session.objects.of(old.tenant.pk).exists()


def test_another_browser_cannot_submit_the_verifier(old: OldClient) -> None:
    page, verifier = verification(old)
    answer = Browser(old.tenant).submit(page, verifier=verifier)
    assert answer.status == 400
    assert not Session.objects.of(old.tenant.pk).exists()


def test_silent_requests_show_no_page(old: OldClient) -> None:
    old.set(settings={"cross_origin_loc": f"{ORIGIN}/verify"})
    page = arrive(old, old.authenticate().json()["login_ticket"], prompt="none")
    assert told(page) == INVALID


def test_a_verification_page_of_another_origin_is_not_used(old: OldClient) -> None:
    old.set(settings={"cross_origin_loc": "https://evil.example/verify"})
    assert told(arrive(old, old.authenticate().json()["login_ticket"])) == INVALID
