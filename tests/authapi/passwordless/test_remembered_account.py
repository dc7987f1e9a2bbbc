"""The remembered account at passwordless logins: the page does not ask for the address, but still requires a code."""

from __future__ import annotations

import re

import pytest

from authapi.login.remembered_account import REMEMBERED
from tests.authapi.browser import Browser, Page
from tests.authapi.hosted_html import Document
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door
from tests.authapi.passwordless.messages import jobs_of, last_code
from tests.authapi.passwordless.test_links import asked_by_page, confirmed, open_link
from tests.authapi.passwordless.test_pages import Visit
from tests.authapi.passwordless.test_pages import visit as visit
from tests.factories.sign_in import PASSWORD, people, person


def typed_fields(page: Page) -> list[str]:
    return [one.attributes["name"] for one in Document(page.body.decode()).elements if one.is_typed]


def address_of(page: Page, words: str) -> str:
    found = re.search(rf'href="([^"]+)">\s*{words}', page.text)
    assert found, page.text
    return found.group(1)


def log_in(visit: Visit, **fields: str) -> None:
    page = visit.enter_address(visit.ask(prompt="login"), **fields)
    assert "code" in visit.enter_code(page, last_code(visit.door.tenant.pk)).answer


def test_the_next_login_does_not_ask_for_the_address(visit: Visit) -> None:
    assert typed_fields(visit.ask()) == ["email"]
    log_in(visit)
    page = visit.ask(prompt="login")
    assert (typed_fields(page), ADA in page.text) == ([], True)
    sent = visit.followed(visit.browser.submit(page, send="code"))
    assert ADA in sent.text
    assert "code" in visit.enter_code(sent, last_code(visit.door.tenant.pk)).answer


def test_a_login_with_the_remembered_account_still_requires_the_right_code(visit: Visit) -> None:
    log_in(visit)
    page = visit.followed(visit.browser.submit(visit.ask(prompt="login"), send="code"))
    assert visit.enter_code(page, "000000").status in (400, 429)


def test_a_phone_number_is_remembered_too(door: Door) -> None:
    visit = Visit(door, Browser(door.tenant))
    page = visit.enter_address(visit.ask(connection="sms"), phone_number=NUMBER)
    assert "code" in visit.enter_code(page, last_code(door.tenant.pk)).answer
    offered = visit.ask(connection="sms", prompt="login")
    assert (typed_fields(offered), NUMBER in offered.text) == ([], True)
    # The number is not filled in as an email address.
    assert typed_fields(visit.ask(connection="email", prompt="login")) == ["email"]
    assert NUMBER not in visit.ask(connection="email", prompt="login").text


def test_the_user_can_log_in_with_another_account(visit: Visit) -> None:
    log_in(visit)
    page = visit.browser.send("GET", address_of(visit.ask(prompt="login"), "Use another account"))
    assert (typed_fields(page), ADA in page.text) == (["email"], False)
    sent = visit.enter_address(page, email="eve@example.test")
    back = visit.browser.send("GET", address_of(sent, "Use another email address"))
    assert (typed_fields(back), ADA in back.text) == (["email"], False)


def test_the_user_can_remove_the_account_from_the_browser(visit: Visit) -> None:
    log_in(visit)
    page = visit.ask(prompt="login")
    answer = visit.browser.post("/u/passwordless", {**page.fields(), "forget": "1"})
    assert REMEMBERED not in visit.browser.cookies
    assert typed_fields(visit.followed(answer)) == ["email"]
    assert len(jobs_of(visit.door.tenant.pk)) == 1


def test_the_login_hint_of_an_application_has_precedence_over_the_remembered_account(visit: Visit) -> None:
    log_in(visit)
    page = visit.ask(prompt="login", login_hint="eve@example.test")
    assert typed_fields(page) == ["email"]
    assert 'value="eve@example.test"' in page.text


def test_the_page_asks_again_for_the_email_address_if_the_submitted_address_is_invalid(visit: Visit) -> None:
    log_in(visit)
    page = visit.ask(prompt="login")
    wrong = visit.browser.submit(page, send="code", email="ada@")
    assert (wrong.status, typed_fields(wrong)) == (400, ["email"])


def test_a_login_by_link_is_remembered_only_in_the_requesting_browser(visit: Visit) -> None:
    path = asked_by_page(visit)
    elsewhere = Browser(visit.door.tenant, address="203.0.113.50")
    assert "code" in confirmed(elsewhere, open_link(elsewhere, path)).answer
    assert REMEMBERED not in elsewhere.cookies
    assert "code" in open_link(visit.browser, asked_by_page(visit)).answer
    assert REMEMBERED in visit.browser.cookies


@pytest.fixture
def with_password(door: Door) -> Visit:
    """A browser in which a user has logged in with a password, at an application that also allows codes."""
    person(people(door.tenant, door.client))
    visit = Visit(door, Browser(door.tenant))
    assert "code" in visit.browser.submit(visit.ask(), username=ADA, password=PASSWORD).answer
    return visit


def test_the_login_page_of_a_remembered_account_offers_codes_and_fills_in_the_address(with_password: Visit) -> None:
    page = with_password.ask(prompt="login")
    assert typed_fields(page) == ["password"]
    asked = with_password.followed(with_password.browser.send("GET", address_of(page, "Log in with a code by email")))
    # The remembered account belongs to a database connection, not to the connection for codes. So the page still asks for the email
    # address, and fills in the address of the account.
    assert typed_fields(asked) == ["email"]
    assert f'value="{ADA}"' in asked.text
    assert typed_fields(with_password.followed(with_password.browser.send("GET", address_of(asked, "Log in another way")))) == ["password"]


def test_the_address_is_not_filled_in_for_another_account(with_password: Visit) -> None:
    page = with_password.browser.send("GET", address_of(with_password.ask(prompt="login"), "Use another account"))
    asked = with_password.followed(with_password.browser.send("GET", address_of(page, "Log in with a code by email")))
    assert (typed_fields(asked), ADA in asked.text) == (["email"], False)


def test_a_login_with_a_code_replaces_the_remembered_password_account(with_password: Visit) -> None:
    page = with_password.ask(prompt="login", connection="email")
    sent = with_password.enter_address(page, email="eve@example.test")
    assert "code" in with_password.enter_code(sent, last_code(with_password.door.tenant.pk)).answer
    offered = with_password.ask(prompt="login")
    assert typed_fields(offered) == ["username", "password"]
    assert ADA not in offered.text
