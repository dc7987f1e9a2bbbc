"""Links that log a user in: which requests open a link, which requests use up the link, and which browsers can log in with the link."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import time_machine

from authapi.accounts.attempts import LoginRefused
from authapi.accounts.passwordless.addresses import Address, Channel
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import log_in_with_link
from authapi.models import LoginTransaction, PasswordlessCode, Session
from authapi.services.clients import revoke_client
from identity.models import User
from identity.services.users import create_user, update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import last_code, last_contents, wrong
from tests.authapi.passwordless.test_pages import Visit
from tests.authapi.passwordless.test_pages import visit as visit
from tests.factories.authapi import host_of
from tests.factories.sign_in import CALLBACK

PARAMETERS = {"redirect_uri": CALLBACK, "response_type": "code", "state": "from-the-app", "scope": "openid"}


def asked_by_application(door: Door, **changes: Any) -> str:
    """Let the application request a link, and return its path."""
    answer = door.start(send="link", authParams={**PARAMETERS, **changes})
    assert answer.status == 200, answer.body
    return path_of(door)


def asked_by_page(visit: Visit) -> str:
    """Request a link on the hosted page, and return its path."""
    page = visit.enter_address(visit.ask(), send="link", email=ADA)
    assert "We sent a link" in page.text
    return path_of(visit.door)


def path_of(door: Door) -> str:
    parts = urlsplit(last_contents(door.tenant.pk).link)
    assert parts.netloc == f"{door.tenant.pk}.example.test"
    return f"{parts.path}?{parts.query}"


def open_link(browser: Browser, path: str, *, method: str = "GET", **headers: str) -> Page:
    return browser.send(method, path, headers=headers)


def confirmed(browser: Browser, page: Page) -> Page:
    return browser.submit(browser.follow(page) if page.status == 302 else page)


def unused(door: Door) -> bool:
    return PasswordlessCode.objects.of(door.tenant.pk).filter(used_at=None).exists()


def test_a_link_of_an_application_asks_for_confirmation_before_it_redirects(door: Door) -> None:
    browser = Browser(door.tenant)
    page = browser.follow(open_link(browser, asked_by_application(door)))
    assert page.status == 200
    assert "Web shop" in page.text
    assert "a•••@example.test" in page.text
    assert ADA not in page.text
    answer = browser.submit(page)
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["state"] == "from-the-app"
    assert User.objects.of(door.tenant.pk).get().email_verified


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_program_that_opens_the_link_neither_uses_it_up_nor_logs_in(door: Door, method: str) -> None:
    path = asked_by_application(door)
    for _ in range(3):
        scanner = Browser(door.tenant, address="203.0.113.77")
        page = open_link(scanner, path, method=method)
        if page.status == 302:
            scanner.follow(page)
    assert unused(door)
    assert not Session.objects.of(door.tenant.pk).exists()
    browser = Browser(door.tenant)
    assert "code" in confirmed(browser, open_link(browser, path)).answer


def test_a_head_request_stores_no_login(door: Door) -> None:
    open_link(Browser(door.tenant), asked_by_application(door), method="HEAD")
    assert not LoginTransaction.objects.of(door.tenant.pk).exists()


def test_the_link_continues_without_confirmation_in_the_requesting_browser(visit: Visit) -> None:
    answer = open_link(visit.browser, asked_by_page(visit))
    assert answer.status == 302
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["state"] == "s"
    assert "session" in visit.browser.cookies


@pytest.mark.parametrize(
    "header", [{"Sec_Purpose": "prefetch"}, {"Purpose": "prefetch"}, {"Sec_Fetch_Dest": "image"}, {"Sec_Fetch_Dest": "iframe"}]
)
def test_a_prefetch_in_the_requesting_browser_does_not_use_up_the_link(visit: Visit, header: dict[str, str]) -> None:
    path = asked_by_page(visit)
    page = open_link(visit.browser, path, **header)
    assert "/u/passwordless/confirm" in page.location
    assert unused(visit.door)


def test_another_browser_must_confirm_and_does_not_log_the_requesting_browser_in(visit: Visit) -> None:
    """An attacker starts a login with the email address of a user, and the user opens the mailed link."""
    path = asked_by_page(visit)
    person = Browser(visit.door.tenant, address="203.0.113.50")
    # The browser of the user has its own cookie, because this browser has opened a login page before.
    Visit(visit.door, person).ask()
    page = open_link(person, path)
    assert "/u/passwordless/confirm" in page.location
    assert unused(visit.door)
    assert "code" in confirmed(person, page).answer
    assert "session" in person.cookies
    assert "session" not in visit.browser.cookies
    silent = visit.browser.get("/authorize", {**PARAMETERS, "client_id": visit.door.client.client_id, "prompt": "none"})
    assert silent.answer["error"] == "login_required"


def test_a_link_requested_by_an_attacker_logs_another_browser_in_only_after_confirmation(visit: Visit) -> None:
    path = asked_by_page(visit)
    victim = Browser(visit.door.tenant, address="203.0.113.50")
    open_link(victim, path, Sec_Fetch_Dest="iframe")
    open_link(victim, path)
    assert "session" not in victim.cookies


def test_another_site_or_browser_cannot_submit_the_confirmation(visit: Visit) -> None:
    path = asked_by_page(visit)
    attacker = Browser(visit.door.tenant, address="203.0.113.50")
    form = attacker.follow(open_link(attacker, path)).fields()
    victim = Browser(visit.door.tenant, address="203.0.113.51")
    victim.get("/authorize", {**PARAMETERS, "client_id": visit.door.client.client_id})
    assert victim.post("/u/passwordless/confirm", form).status == 400
    assert attacker.post("/u/passwordless/confirm", form, Origin="https://evil.example").status == 400
    assert attacker.post("/u/passwordless/confirm", {**form, "form_token": ""}).status == 400
    assert unused(visit.door)


def test_a_link_is_accepted_once(door: Door) -> None:
    path = asked_by_application(door)
    first, second = Browser(door.tenant), Browser(door.tenant, address="203.0.113.5")
    waiting = second.follow(open_link(second, path))
    assert "code" in confirmed(first, open_link(first, path)).answer
    late = second.submit(waiting)
    assert (late.status, "already been used" in late.text) == (410, True)
    again = open_link(first, path)
    assert (again.status, "already been used" in again.text) == (410, True)


def test_the_second_of_two_simultaneous_confirmations_finds_the_link_used(door: Door) -> None:
    asked_by_application(door)
    seen = PasswordlessCode.objects.of(door.tenant.pk).select_related("client", "connection").get()
    both: dict[str, Any] = {"host": host_of(door.tenant), "place": Place("192.0.2.1"), "user_agent": ""}
    assert log_in_with_link(seen, Address(Channel.EMAIL, ADA), **both).email == ADA
    with pytest.raises(LoginRefused):
        log_in_with_link(seen, Address(Channel.EMAIL, ADA), **both)


def test_a_newer_login_invalidates_an_older_link(door: Door) -> None:
    path = asked_by_application(door)
    assert door.redeem(door.code()).status == 200
    assert open_link(Browser(door.tenant), path).status == 410


def test_an_expired_link_shows_that_it_has_expired(door: Door, settings: Any) -> None:
    path = asked_by_application(door)
    with time_machine.travel(time.time() + settings.PASSWORDLESS_LINK_SECONDS + 1):
        page = open_link(Browser(door.tenant), path)
    assert (page.status, "has expired" in page.text) == (410, True)


@pytest.mark.parametrize("ticket", ["", "x", "a" * 43, "%00"])
def test_an_invalid_link_shows_that_it_is_invalid(door: Door, ticket: str) -> None:
    page = Browser(door.tenant).send("GET", f"/u/passwordless/link?ticket={ticket}")
    assert (page.status, "incomplete" in page.text) == (404, True)


def test_a_link_of_another_tenant_is_unknown(door: Door) -> None:
    from tests.factories.admin import new_tenant

    path = asked_by_application(door)
    assert open_link(Browser(new_tenant()), path).status == 404


def test_an_altered_redirect_uri_in_a_link_has_no_effect(door: Door) -> None:
    browser = Browser(door.tenant)
    path = asked_by_application(door) + "&" + urlencode({"redirect_uri": "https://evil.example/", "state": "evil", "client_id": "evil"})
    answer = confirmed(browser, open_link(browser, path))
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["state"] == "from-the-app"


def test_a_callback_that_is_no_longer_registered_invalidates_the_link(door: Door) -> None:
    from authapi.services.clients import update_client

    path = asked_by_application(door)
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"redirect_uris": "https://new.example/cb"})
    forget_all()
    page = open_link(Browser(door.tenant), path)
    assert (page.status, "Callback URL mismatch" in page.text) == (400, True)


def test_a_link_of_a_revoked_client_is_refused(door: Door) -> None:
    path = asked_by_application(door)
    revoke_client(tenant_id=door.tenant.pk, client_id=door.client.client_id)
    forget_all()
    assert open_link(Browser(door.tenant), path).status == 400


def test_a_blocked_user_is_reported_to_the_application(door: Door) -> None:
    user = create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA)
    update_user(tenant_id=door.tenant.pk, user_id=user.user_id, changes={"blocked": True})
    browser = Browser(door.tenant)
    assert confirmed(browser, open_link(browser, asked_by_application(door))).answer["error"] == "unauthorized"


def test_a_link_ignores_parameters_that_would_replace_its_login(door: Door) -> None:
    """Parameters that would replace the login, such as `request`, are removed from the parameters of the application."""
    path = asked_by_application(door, login_ticket="x", client_id="other", connection="nowhere")
    browser = Browser(door.tenant)
    assert "code" in confirmed(browser, open_link(browser, path)).answer


def test_the_address_of_the_confirmation_page_contains_no_secret(door: Door) -> None:
    browser = Browser(door.tenant)
    path = asked_by_application(door)
    page = open_link(browser, path)
    assert path.partition("ticket=")[2] not in page.location
    assert page.headers["referrer-policy"] == "no-referrer"


# --- /passwordless/verify_redirect ------------------------------------------------------------------------------------


def redirect(door: Door, browser: Browser, code: str, **changes: Any) -> Page:
    asked = {"client_id": door.client.client_id, "connection": "email", "email": ADA, "verification_code": code, **PARAMETERS, **changes}
    return browser.get("/passwordless/verify_redirect", {name: value for name, value in asked.items() if value is not None})


def test_a_code_in_the_url_asks_for_confirmation_and_redirects_to_the_application(door: Door) -> None:
    browser, code = Browser(door.tenant), door.code()
    page = redirect(door, browser, code)
    assert code not in page.location
    assert unused(door)
    answer = confirmed(browser, page)
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["state"] == "from-the-app"
    assert "session" in browser.cookies


def test_a_phone_number_and_its_code_in_the_url_ask_for_confirmation_too(door: Door) -> None:
    door.start(connection="sms", email=None, phone_number=NUMBER)
    browser = Browser(door.tenant)
    page = redirect(door, browser, last_code(door.tenant.pk), connection="sms", email=None, phone_number=NUMBER)
    assert "code" in confirmed(browser, page).answer


def test_an_attacker_cannot_log_a_browser_in_with_a_code_of_the_attacker(door: Door) -> None:
    victim = Browser(door.tenant)
    page = victim.follow(redirect(door, victim, door.code()))
    assert "a•••@example.test" in page.text
    assert "session" not in victim.cookies


def test_a_wrong_code_is_reported_to_the_client_and_counted(door: Door) -> None:
    code = door.code()
    browser = Browser(door.tenant)
    answer = confirmed(browser, redirect(door, browser, wrong(code)))
    assert answer.answer["error"] == "access_denied"
    assert PasswordlessCode.objects.of(door.tenant.pk).get().failures == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"connection": "nowhere"}, "invalid_request"),
        ({"connection": None}, "invalid_request"),
        ({"email": None}, "invalid_request"),
        ({"email": "odd"}, "access_denied"),
        ({"verification_code": None}, "invalid_request"),
    ],
)
def test_an_invalid_request_is_reported_to_the_client(door: Door, changes: dict[str, Any], error: str) -> None:
    page = redirect(door, Browser(door.tenant), door.code(), **changes)
    assert page.location.startswith(CALLBACK)
    assert page.answer["error"] == error


@pytest.mark.parametrize("changes", [{"redirect_uri": "https://evil.example/"}, {"client_id": "unknown"}, {"client_id": None}])
def test_an_error_is_shown_on_a_page_if_no_client_can_receive_the_error(door: Door, changes: dict[str, Any]) -> None:
    page = redirect(door, Browser(door.tenant), door.code(), **changes)
    assert (page.status, "location" in page.headers) == (400, False)


def test_a_link_creates_no_account_if_sign_ups_are_off(door: Door) -> None:
    path = asked_by_application(door)
    set_options(door.email, disable_signup=True)
    browser = Browser(door.tenant)
    assert confirmed(browser, open_link(browser, path)).answer["error"] == "invalid_request"
    assert not User.objects.of(door.tenant.pk).exists()
