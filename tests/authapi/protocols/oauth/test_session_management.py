"""OpenID Connect Session Management 1.0: what applications can observe of a session, and what they cannot observe."""

from __future__ import annotations

import hashlib
from http.cookies import Morsel, SimpleCookie

import pytest

from authapi.login.session_state import browser_state
from authapi.models import Session
from authapi.services.tenant_settings import update_tenant_settings
from tests.authapi.asgi_client import get
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.memory import forget_all
from tests.factories.sign_in import CALLBACK, PASSWORD, person

ORIGIN = "https://app.example.test"
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def watched(login: Login) -> Login:
    """Let the tenant allow applications to observe sessions."""
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"session_management_supported": True})
    forget_all()
    return login


def cookie_of(page: Page, name: str) -> Morsel[str]:
    return next(found[name] for line in page.set_cookies if name in (found := SimpleCookie(line)))


def judged(state: str, *, client_id: str, origin: str, cookie: str) -> str:
    """Compute the result that the script of the page must compute, but without this script (Session Management 1.0, 3.2)."""
    digest, _, salt = state.partition(".")
    return "unchanged" if hashlib.sha256(f"{client_id} {origin} {cookie} {salt}".encode()).hexdigest() == digest else "changed"


def test_no_session_state_is_sent_if_the_tenant_has_not_enabled_session_management(login: Login) -> None:
    page = login.begin_session()
    assert "session_state" not in page.answer
    assert set(login.browser.cookies) & {"session", "session_state"} == {"session"}
    assert login.browser.get("/oidc/check_session").status == 404
    assert "check_session_iframe" not in get(login.tenant, DISCOVERY).json()


def test_an_answer_has_a_session_state_that_matches_the_cookie(watched: Login) -> None:
    page = watched.begin_session()
    state, cookie = page.answer["session_state"], watched.browser.cookies["session_state"]
    asked = {"client_id": watched.client.client_id, "origin": ORIGIN, "cookie": cookie}
    assert judged(state, **asked) == "unchanged"
    for wrong in ({"origin": "https://evil.example.test"}, {"client_id": "another"}, {"cookie": ""}):
        assert judged(state, **(asked | wrong)) == "changed"


def test_the_cookie_that_scripts_can_read_does_not_open_the_session(watched: Login) -> None:
    page = watched.begin_session()
    shown, kept = cookie_of(page, "session_state"), cookie_of(page, "session")
    assert (shown["httponly"], kept["httponly"]) == ("", True)
    session = Session.objects.of(watched.tenant.pk).get()
    assert shown.value == browser_state(session)
    assert not {session.pk, session.digest, kept.value} & {shown.value, page.answer["session_state"]}
    thief = Browser(watched.tenant, cookies={"session": shown.value, "session_state": shown.value})
    asked = {"client_id": watched.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "prompt": "none"}
    assert thief.get("/authorize", asked).answer["error"] == "login_required"


def test_each_answer_has_a_new_salt_and_the_cookie_stays_the_same(watched: Login) -> None:
    first, cookie = watched.begin_session().answer["session_state"], watched.browser.cookies["session_state"]
    second = watched.ask(prompt="none").answer["session_state"]
    watched.log_in(watched.ask(prompt="login"))
    assert (first != second, watched.browser.cookies["session_state"]) == (True, cookie)


@pytest.mark.parametrize("mode", ["fragment", "form_post"])
def test_the_session_state_is_sent_in_every_response_mode(watched: Login, mode: str) -> None:
    watched.begin_session()
    page = watched.ask(prompt="none", response_mode=mode)
    sent = page.fields() if mode == "form_post" else page.answer
    assert len(sent["session_state"].partition(".")[0]) == 64


@pytest.mark.parametrize("changes", [{"scope": "profile"}, {"redirect_uri": "com.example.app://back"}])
def test_an_answer_without_openid_or_without_a_web_page_has_no_session_state(watched: Login, changes: dict[str, str]) -> None:
    set_client(watched, redirect_uris=f"{CALLBACK} com.example.app://back")
    watched.begin_session()
    page = watched.ask(prompt="none", **changes)
    assert ("code" in page.answer, "session_state" in page.answer) == (True, False)


def test_the_page_reports_a_change_after_a_logout(watched: Login) -> None:
    watched.begin_session()
    watched.browser.get("/v2/logout")
    assert not {"session", "session_state"} & set(watched.browser.cookies)


def test_the_page_reports_a_change_after_a_login_of_another_user(watched: Login) -> None:
    watched.begin_session()
    before = watched.browser.cookies["session_state"]
    person(watched.connection, email="grace@example.test", name="Grace")
    watched.log_in(watched.ask(prompt="login"), identifier="grace@example.test", password=PASSWORD)
    assert watched.browser.cookies["session_state"] not in (before, "")


def test_the_next_silent_request_detects_a_session_that_ended_elsewhere(watched: Login) -> None:
    watched.begin_session()
    Session.objects.of(watched.tenant.pk).all().delete()
    assert watched.ask(prompt="none").answer["error"] == "login_required"
    assert "session_state" not in watched.browser.cookies


def test_the_page_can_be_framed_and_loads_one_script(watched: Login) -> None:
    page = watched.browser.get("/oidc/check_session")
    assert page.status == 200
    policy = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors https: http:"
    assert page.headers["content-security-policy"] == policy
    assert "x-frame-options" not in page.headers
    assert page.set_cookies == []
    assert 'data-cookie="session_state"' in page.text
    assert page.text.count("<script") == 1
    assert get(watched.tenant, DISCOVERY).json()["check_session_iframe"] == f"{watched.issuer}oidc/check_session"
