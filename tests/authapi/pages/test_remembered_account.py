"""The account that a browser remembers: the login page asks only for the password, and users can remove the account from the browser."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings

from authapi.login.remembered_account import REMEMBERED
from authapi.models import TenantSettings
from authapi.tenant_settings import remembered_settings
from foundation.secrets import vault
from identity.models import User
from tests.authapi.browser import Browser, Page
from tests.authapi.hosted_html import Document
from tests.authapi.login.conftest import Login
from tests.factories.admin import new_tenant
from tests.factories.sign_in import PASSWORD, people, person, web_client

NAME = "ada@example.test"


def typed_fields(page: Page) -> list[str]:
    return [one.attributes["name"] for one in Document(page.body.decode()).elements if one.is_typed]


def login_page(login: Login, **asked: str) -> Page:
    return login.browser.follow(login.ask(prompt="login", **asked))


def link(page: Page, words: str) -> str:
    found = re.search(rf'href="([^"]+)">\s*{words}', page.text)
    assert found, page.text
    return found.group(1)


def test_the_login_page_asks_only_for_the_password_of_the_last_account(login: Login) -> None:
    assert typed_fields(login_page(login)) == ["username", "password"]
    login.begin_session()
    page = login_page(login)
    assert typed_fields(page) == ["password"]
    assert NAME in page.text
    # A hidden field contains the name, so that a password manager can find the password.
    assert re.search(rf'<input[^>]*name="username"[^>]*value="{NAME}"[^>]*autocomplete="username"[^>]*hidden', page.text)
    assert "code" in login.log_in(page).answer


def test_the_account_is_still_offered_after_the_logout(login: Login) -> None:
    login.begin_session()
    login.browser.get("/v2/logout")
    assert typed_fields(login.browser.follow(login.ask())) == ["password"]


def test_the_page_asks_for_the_password_again_after_a_wrong_password(login: Login) -> None:
    login.begin_session()
    page = login.log_in(login_page(login), password="wrong")
    assert (page.status, typed_fields(page)) == (400, ["password"])
    assert "Wrong email address or password." in page.text


def test_a_login_with_another_account_replaces_the_remembered_account(login: Login) -> None:
    person(login.connection, email="eve@example.test")
    login.begin_session()
    page = login.browser.send("GET", link(login_page(login), "Use another account"))
    assert typed_fields(page) == ["username", "password"]
    assert NAME not in page.text
    assert "code" in login.log_in(page, identifier="eve@example.test").answer
    offered = login_page(login)
    assert ("eve@example.test" in offered.text, NAME in offered.text) == (True, False)


def test_the_user_can_remove_the_account_from_the_browser(login: Login) -> None:
    login.begin_session()
    page = login_page(login)
    answer = login.browser.post("/u/login", {**page.fields(), "forget": "1"}, Origin=f"http://{login.browser.host}")
    assert answer.status == 303
    assert REMEMBERED not in login.browser.cookies
    assert NAME not in login.browser.follow(answer).text


def test_another_site_cannot_make_a_browser_forget_the_account(login: Login) -> None:
    login.begin_session()
    fields = {**login_page(login).fields(), "forget": "1"}
    assert login.browser.post("/u/login", {**fields, "form_token": "0" * 64}).status == 400
    assert login.browser.post("/u/login", fields, Origin="https://elsewhere.test").status == 400
    assert REMEMBERED in login.browser.cookies


def test_the_login_hint_of_a_client_has_precedence_over_the_remembered_account(login: Login) -> None:
    login.begin_session()
    assert typed_fields(login_page(login, login_hint="eve@example.test")) == ["username", "password"]
    assert typed_fields(login_page(login, login_hint=NAME)) == ["password"]


def test_the_page_does_not_reveal_whether_the_account_still_exists(login: Login) -> None:
    login.begin_session()
    before = login_page(login)
    User.objects.of(login.tenant.pk).filter(pk=login.user.pk).delete()
    after = login_page(login)
    handles = r'(?:state|form_token)(?:=|" value=")[\w-]+'
    assert re.sub(handles, "", before.text) == re.sub(handles, "", after.text)
    refused = login.log_in(after)
    assert (refused.status, "Wrong email address or password." in refused.text) == (400, True)


@pytest.mark.parametrize("value", ["", "x", "a.b", "ada@example.test", "k1.AAAA", "x" * 5000])
def test_a_cookie_that_this_service_did_not_seal_is_ignored(login: Login, value: str) -> None:
    login.browser.cookies[REMEMBERED] = value
    assert typed_fields(login_page(login)) == ["username", "password"]


def test_a_cookie_of_another_tenant_is_ignored(login: Login) -> None:
    login.begin_session()
    other = new_tenant()
    client, _ = web_client(other)
    people(other, client)
    browser = Browser(other, cookies={REMEMBERED: login.browser.cookies[REMEMBERED]})
    page = browser.follow(browser.get("/authorize", {"client_id": client.client_id, "response_type": "code"}))
    assert typed_fields(page) == ["username", "password"]
    assert NAME not in page.text


def test_an_account_of_another_connection_is_not_offered(login: Login) -> None:
    client, _ = web_client(login.tenant, name="Other")
    people(login.tenant, client, name="others")
    login.begin_session()
    page = login.browser.follow(login.ask(client_id=client.client_id, prompt="login"))
    assert typed_fields(page) == ["username", "password"]


def test_the_cookie_does_not_show_the_name_and_cannot_be_opened_with_another_key(login: Login) -> None:
    login.begin_session()
    value = login.browser.cookies[REMEMBERED]
    assert "ada" not in value
    assert NAME in vault.unseal(value, place=f"{login.tenant.pk}:cookie:{REMEMBERED}")
    with override_settings(ENCRYPTION_KEYS={"other": "k" * 40}):
        browser = Browser(login.tenant, cookies={REMEMBERED: value})
        asked = {"client_id": login.client.client_id, "response_type": "code"}
        assert typed_fields(browser.follow(browser.get("/authorize", asked))) == ["username", "password"]


def test_the_cookie_has_no_expiry_if_sessions_end_when_the_browser_is_closed(login: Login) -> None:
    def set_by(answer: Page) -> str:
        return next(line for line in answer.set_cookies if line.startswith(f"{REMEMBERED}="))

    assert "Max-Age=7776000" in set_by(login.log_in(login.ask()))
    TenantSettings(tenant_id=login.tenant.pk, values={"session_cookie": {"mode": "non-persistent"}}).save()
    remembered_settings.clear()
    login.browser.cookies.clear()
    line = set_by(login.log_in(login.ask()))
    assert ("Max-Age" in line, "HttpOnly" in line) == (False, True)


def test_the_address_of_a_sign_up_is_remembered(login: Login) -> None:
    page = login.browser.follow(login.ask(screen_hint="signup"))
    login.browser.post("/u/signup", {**page.fields(), "email": "new@example.test", "password": PASSWORD})
    assert "new@example.test" in login_page(login).text


def test_the_account_of_a_failed_login_is_not_remembered(login: Login) -> None:
    login.log_in(login.ask(), password="wrong")
    login.log_in(login.ask(), identifier="eve@example.test")
    assert REMEMBERED not in login.browser.cookies
