"""The hosted pages that ask for an email address or phone number, and for a code. They do not reveal whether an account exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import time_machine

from authapi.models import LoginTransaction, Session
from authapi.services.clients import update_client
from identity.models import User
from identity.services.connections import create_connection, update_connection
from identity.services.users import create_user, update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.hosted_html import Document
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import jobs_of, last_code, last_contents, wrong
from tests.factories.sign_in import CALLBACK, people


@dataclass
class Visit:
    """A user with a browser, at an application with a passwordless connection."""

    door: Door
    browser: Browser

    def ask(self, **changes: Any) -> Page:
        """Go to `/authorize`, and continue to the next page."""
        good = {"client_id": self.door.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}
        page = self.browser.get("/authorize", {**good, **changes})
        return self.followed(page)

    def followed(self, page: Page) -> Page:
        while page.status in (302, 303) and page.location.startswith("/"):
            page = self.browser.follow(page)
        return page

    def enter_address(self, page: Page, *, send: str = "code", **fields: str) -> Page:
        return self.followed(self.browser.submit(page, send=send, **(fields or {"email": ADA})))

    def enter_code(self, page: Page, code: str) -> Page:
        return self.browser.submit(page, code=code)


@pytest.fixture
def visit(door: Door) -> Visit:
    # A code is the only method, so the login begins with the page that asks for the email address.
    update_connection(tenant_id=door.tenant.pk, connection_id=door.sms.pk, changes={"enabled_clients": []})
    return Visit(door, Browser(door.tenant))


@pytest.fixture
def at_code(visit: Visit) -> Callable[[], Page]:
    return lambda: visit.enter_address(visit.ask())


def test_a_user_logs_in_with_a_code_which_creates_the_account(visit: Visit) -> None:
    form = visit.ask()
    assert "Email me a code" in form.text
    page = visit.enter_address(form)
    assert page.status == 200
    assert ADA in page.text
    code = last_code(visit.door.tenant.pk)
    answer = visit.enter_code(page, f"{code[:3]} {code[3:]}")
    assert answer.status == 303
    assert answer.answer["state"] == "s"
    assert "code" in answer.answer
    [session] = Session.objects.of(visit.door.tenant.pk)
    assert session.user.user_id.startswith("email|")
    assert [method["name"] for method in session.methods] == ["otp", "email"]


def test_a_user_logs_in_with_a_text_message(door: Door) -> None:
    visit = Visit(door, Browser(door.tenant))
    page = visit.enter_address(visit.ask(connection="sms"), phone_number="+49 151 12345678")
    assert NUMBER in page.text
    assert "code" in visit.enter_code(page, last_code(door.tenant.pk)).answer


def test_the_login_page_offers_codes_besides_passwords(door: Door) -> None:
    people(door.tenant, door.client)
    page = Visit(door, Browser(door.tenant)).ask()
    for words in ("Password", "Log in with a code by email", "Log in with a code by text message"):
        assert words in page.text


def test_the_address_field_contains_the_login_hint_of_the_application(visit: Visit) -> None:
    assert 'value="ada@example.test"' in visit.ask(login_hint=ADA).text


@pytest.mark.parametrize("typed", ["", "no address", "a" * 300 + "@example.test", "<script>@x", "ada@exämple.test"])
def test_an_invalid_address_is_reported_and_nothing_is_sent(visit: Visit, typed: str) -> None:
    page = visit.enter_address(visit.ask(), email=typed)
    assert page.status == 400
    assert ("Enter an email address like" if typed else "Enter your email address.") in page.text
    assert jobs_of(visit.door.tenant.pk) == []


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "Enter your phone number."),
        ("0151 1234", "Enter a phone number with the country code"),
        ("+33 6 12 34 56 78", "Messages are not sent to numbers of this country."),
    ],
)
def test_an_invalid_number_is_reported_and_nothing_is_sent(door: Door, typed: str, told: str) -> None:
    set_options(door.sms, allowed_countries=["DE"])
    visit = Visit(door, Browser(door.tenant))
    page = visit.enter_address(visit.ask(connection="sms"), phone_number=typed)
    assert (page.status, told in page.text) == (400, True)
    assert jobs_of(door.tenant.pk) == []


def test_phones_show_the_right_keyboard_for_each_field_and_suggest_the_code(door: Door) -> None:
    visit = Visit(door, Browser(door.tenant))

    def keys(page: Page) -> tuple[str, str]:
        [field] = [one.attributes for one in Document(page.body.decode()).elements if one.is_typed]
        return field["inputmode"], field["autocomplete"]

    number = visit.ask(connection="sms")
    assert (keys(visit.ask(connection="email")), keys(number)) == (("email", "username"), ("tel", "tel"))
    assert keys(visit.enter_address(number, phone_number=NUMBER)) == ("numeric", "one-time-code")


def test_the_pages_are_the_same_whether_or_not_the_user_has_an_account(visit: Visit) -> None:
    set_options(visit.door.email, disable_signup=True)
    create_user(tenant_id=visit.door.tenant.pk, connection=visit.door.email, email=ADA)
    known = visit.enter_address(visit.ask())
    other = Visit(visit.door, Browser(visit.door.tenant))
    unknown = other.enter_address(other.ask(), email="eve@example.test")
    assert "If there is an account" in known.text

    def bare(page: Page) -> str:
        fields = page.fields()
        return page.text.replace(fields["state"], "").replace(fields["form_token"], "").replace(ADA, "").replace("eve@example.test", "")

    assert bare(known) == bare(unknown)
    assert known.status == unknown.status
    wrong_known, wrong_unknown = visit.enter_code(known, "000000"), other.enter_code(unknown, "000000")
    assert bare(wrong_known) == bare(wrong_unknown)


def test_after_a_wrong_code_the_page_can_be_used_again(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    again = visit.enter_code(page, wrong(last_code(visit.door.tenant.pk)))
    assert (again.status, "wrong or has expired" in again.text) == (400, True)
    assert visit.enter_code(page, "").status == 400
    assert "code" in visit.enter_code(again, last_code(visit.door.tenant.pk)).answer


def test_too_many_wrong_codes_block_further_guesses_from_this_ip_address(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    statuses = [visit.enter_code(page, wrong(last_code(visit.door.tenant.pk), by=by)).status for by in range(1, 7)]
    assert statuses == [400] * 5 + [429]


def test_another_message_is_sent_after_half_a_minute_and_both_codes_are_valid(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    first = last_code(visit.door.tenant.pk)
    assert "You can ask for another message in 30 seconds." in page.text or "in 29 seconds" in page.text
    early = visit.browser.submit(page, again="1")
    assert (early.status, len(jobs_of(visit.door.tenant.pk))) == (429, 1)
    with time_machine.travel(time.time() + 31):
        sent = visit.followed(visit.browser.submit(page, again="1"))
        assert "Another message is on its way." in sent.text
        assert len(jobs_of(visit.door.tenant.pk)) == 2
        assert "code" in visit.enter_code(sent, first).answer


def test_the_pages_send_a_limited_number_of_messages_to_a_mailbox(visit: Visit) -> None:
    statuses = [visit.enter_address(visit.ask()).status for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    assert len(jobs_of(visit.door.tenant.pk)) == 5


def test_a_known_browser_gets_a_code_during_a_flood_from_other_browsers(visit: Visit, at_code: Callable[[], Page]) -> None:
    assert "code" in visit.enter_code(at_code(), last_code(visit.door.tenant.pk)).answer
    for number in range(10):
        visit.door.start(address=f"203.0.113.{number}")
    stranger = Visit(visit.door, Browser(visit.door.tenant, address="203.0.114.7"))
    assert stranger.enter_address(stranger.ask()).status == 429
    assert visit.enter_address(visit.ask(prompt="login")).status == 200


def test_a_browser_in_which_another_user_logged_in_gets_no_code_during_a_flood(visit: Visit) -> None:
    create_user(tenant_id=visit.door.tenant.pk, connection=visit.door.email, email=ADA)
    page = visit.enter_address(visit.ask(), email="eve@example.test")
    assert "code" in visit.enter_code(page, last_code(visit.door.tenant.pk)).answer
    for number in range(10):
        visit.door.start(address=f"203.0.113.{number}")
    assert visit.enter_address(visit.ask(prompt="login")).status == 429


def test_the_account_cannot_be_changed_between_the_two_steps(visit: Visit) -> None:
    form = visit.ask()
    visit.enter_address(form, email="eve@example.test")
    hers = last_code(visit.door.tenant.pk)
    page = visit.enter_address(form, email=ADA)
    answer = visit.browser.submit(page, code=hers, email=ADA)
    assert answer.status == 400
    assert not User.objects.of(visit.door.tenant.pk).exists()


def test_a_code_of_one_login_is_refused_in_another_login(visit: Visit, at_code: Callable[[], Page]) -> None:
    at_code()
    code = last_code(visit.door.tenant.pk)
    other = Visit(visit.door, Browser(visit.door.tenant, address="203.0.113.5"))
    page = other.enter_address(other.ask())
    assert other.enter_code(page, code).status == 400
    assert visit.door.redeem(code).status == 403


def test_a_form_of_another_browser_is_refused(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    other = Browser(visit.door.tenant)
    refused = other.post("/u/passwordless/code", {**page.fields(), "code": last_code(visit.door.tenant.pk)})
    assert (refused.status, "another browser" in refused.text) == (400, True)
    forged = visit.browser.post("/u/passwordless/code", {**page.fields(), "form_token": "x", "code": last_code(visit.door.tenant.pk)})
    assert forged.status == 400


def test_an_expired_login_is_reported(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    LoginTransaction.objects.of(visit.door.tenant.pk).delete()
    assert "expired" in visit.enter_code(page, "123456").text


def test_the_code_page_asks_for_the_address_if_none_was_submitted(visit: Visit) -> None:
    form = visit.ask()
    page = visit.followed(visit.browser.get("/u/passwordless/code", {"state": form.fields()["state"]}))
    assert "Email me a code" in page.text


def test_a_blocked_user_is_reported_to_the_application(visit: Visit, at_code: Callable[[], Page]) -> None:
    user = create_user(tenant_id=visit.door.tenant.pk, connection=visit.door.email, email=ADA)
    update_user(tenant_id=visit.door.tenant.pk, user_id=user.user_id, changes={"blocked": True})
    answer = visit.enter_code(at_code(), last_code(visit.door.tenant.pk))
    assert answer.answer["error"] == "unauthorized"


def test_an_attacker_cannot_use_a_session_planted_in_the_browser_of_a_user(visit: Visit, at_code: Callable[[], Page]) -> None:
    attacker = Visit(visit.door, Browser(visit.door.tenant, address="203.0.113.5"))
    page = attacker.enter_address(attacker.ask(), email="eve@example.test")
    attacker.enter_code(page, last_code(visit.door.tenant.pk))
    planted = attacker.browser.cookies["session"]
    visit.browser.cookies["session"] = planted
    page = visit.enter_address(visit.ask(prompt="login"))
    assert "code" in visit.enter_code(page, last_code(visit.door.tenant.pk)).answer
    assert visit.browser.cookies["session"] != planted
    assert (
        "code"
        not in attacker.browser.get(
            "/authorize", {"client_id": visit.door.client.client_id, "response_type": "code", "prompt": "none"}
        ).answer
    )


def test_a_user_whose_domain_has_an_enterprise_connection_is_redirected_to_the_provider(visit: Visit) -> None:
    create_connection(
        tenant_id=visit.door.tenant.pk, name="company", strategy="oidc", enabled_clients=[visit.door.client.client_id],
        options={"client_id": "c", "issuer": "https://idp.example/", "domain_aliases": ["corp.example"]},
    )  # fmt: skip
    state = visit.ask().text.partition("state=")[2].partition("&")[0]
    page = visit.browser.get("/u/passwordless", {"state": state})
    sent = visit.browser.submit(page, send="code", email="ada@corp.example")
    assert "connection=company" in sent.location
    assert jobs_of(visit.door.tenant.pk) == []


def test_a_connection_that_is_disabled_during_the_login_sends_nothing(visit: Visit) -> None:
    form = visit.ask()
    update_connection(tenant_id=visit.door.tenant.pk, connection_id=visit.door.email.pk, changes={"enabled_clients": []})
    page = visit.browser.submit(form, send="code", email=ADA)
    assert page.answer["error"] == "invalid_request"
    assert jobs_of(visit.door.tenant.pk) == []


def test_a_callback_that_was_removed_during_the_login_is_refused(visit: Visit, at_code: Callable[[], Page]) -> None:
    page = at_code()
    update_client(
        tenant_id=visit.door.tenant.pk, client_id=visit.door.client.client_id, changes={"redirect_uris": "https://new.example/cb"}
    )
    forget_all()
    answer = visit.enter_code(page, last_code(visit.door.tenant.pk))
    assert answer.status == 400
    assert last_contents(visit.door.tenant.pk).link == ""
