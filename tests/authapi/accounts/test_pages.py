"""The account pages: sign up, request a link, set a password, lift a block. Tested over the ASGI application without JavaScript."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail

from authapi import tasks
from authapi.accounts.attempts import Refusal
from authapi.models import AccountTicket, RefreshToken, Session, SignIn, TenantSettings
from authapi.tenant_settings import remembered_settings
from events.models import Event
from identity.mail.verification import start_verification
from identity.models import Connection, Job, PasswordCredential, User
from identity.services.connections import update_connection
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.authapi.accounts.logging_in import WRONG, attempt, outcome, protect, suspect
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login
from tests.factories.admin import new_tenant
from tests.factories.sign_in import PASSWORD, session_of

NEW = "Quite-Another-Horse-2"
BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
SIGN_UP, REQUEST, RESET, UNBLOCK = "/u/signup", "/u/reset-password/request", "/u/reset-password", "/u/unblock"
VERIFY = "/u/email-verification"


def opened(visit: Login, words: str, **asked: Any) -> Page:
    """Start a login, and open the page behind the link with this text."""
    page = visit.browser.follow(visit.ask(**asked))
    found = re.search(rf'href="([^"]+)"[^>]*>\s*{words}', page.body.decode())
    assert found, page.text
    path, _, query = found.group(1).replace("&amp;", "&").partition("?")
    return visit.browser.get(path, dict(pair.split("=") for pair in query.split("&")))


def options(connection: Connection, **changes: Any) -> Connection:
    return update_connection(
        tenant_id=connection.tenant_id, connection_id=connection.pk, changes={"options": {**connection.options, **changes}}
    )


def mailed_link(tenant_id: str, kind: Job.Type) -> str:
    """Let the worker send the newest mail of a kind, and return the secret in the link of this mail."""
    assert run_job(Job.objects.of(tenant_id).filter(type=kind).latest("created_at").pk)
    found = re.search(r"\?ticket=(\S+)", str(mail.outbox[-1].body))
    assert found, mail.outbox[-1].body
    return found.group(1)


def reset_link(visit: Login) -> str:
    page = opened(visit, "Forgot password\\?")
    visit.browser.post(REQUEST, {**page.fields(), "username": "ada@example.test"})
    return mailed_link(visit.tenant.pk, Job.Type.PASSWORD_RESET_EMAIL)


def set_password(visit: Login, secret: str, password: str = NEW, repeated: str | None = None) -> Page:
    fields = {"ticket": secret, "password": password, "repeated": password if repeated is None else repeated}
    return Browser(visit.tenant).post(RESET, fields)


# --- Sign up -------------------------------------------------------------------------------------------------------------------


def test_a_sign_up_that_was_not_started_in_this_browser_is_refused(login: Login) -> None:
    page = opened(login, "Sign up")
    sent = {**page.fields(), "email": "new@example.test", "password": PASSWORD}
    assert Browser(login.tenant).post(SIGN_UP, sent).status in (400, 403)
    assert login.browser.post(SIGN_UP, {**sent, "form_token": "0" * 64}).status in (400, 403)
    assert login.browser.post(SIGN_UP, sent, Origin="https://elsewhere.test").status in (400, 403)
    assert User.objects.of(login.tenant.pk).count() == 1


@pytest.mark.parametrize(
    ("fields", "words", "field"),
    [
        ({"email": "", "password": PASSWORD}, "Enter an email address", "email"),
        ({"email": "no address", "password": PASSWORD}, "Enter an email address", "email"),
        ({"email": "no address", "password": ""}, "Enter an email address", "email"),
        ({"email": "new@example.test", "password": ""}, "Choose a password.", "password"),
        ({"email": "new@example.test", "password": "short"}, "This password is too weak. Follow the rules", "password"),
        ({"email": "new@example.test", "password": "x" * 5000}, "Choose a password.", "password"),
    ],
)
def test_an_error_at_the_top_of_the_page_has_a_link_to_its_field(
    login: Login,
    fields: dict[str, str],
    words: str,
    field: str,
) -> None:
    page = opened(login, "Sign up")
    answer = login.browser.post(SIGN_UP, {**page.fields(), **fields})
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert re.search(rf'<a href="#{field}">\s*{re.escape(words)}', answer.text)
    assert 'aria-invalid="true"' in answer.text
    # The form keeps the input except the password.
    assert not fields["email"] or f'value="{fields["email"]}"' in answer.text
    assert not fields["password"] or fields["password"] not in answer.text
    # The corrected form is accepted.
    assert answer.fields() == page.fields()


def test_the_message_about_a_taken_address_does_not_reveal_that_it_is_taken(login: Login) -> None:
    page = opened(login, "Sign up")
    answer = login.browser.post(SIGN_UP, {**page.fields(), "email": "ADA@example.test", "password": PASSWORD})
    assert answer.status == 400
    assert "This account cannot be created." in answer.text
    assert "exists" not in answer.text
    assert not login.browser.cookies.get("session")


def test_a_connection_with_disabled_sign_ups_shows_no_link_and_creates_no_user(login: Login) -> None:
    page = opened(login, "Sign up")
    options(login.connection, disable_signup=True)
    assert "Sign up" not in login.browser.follow(login.ask()).text
    answer = login.browser.post(SIGN_UP, {**page.fields(), "email": "new@example.test", "password": PASSWORD})
    assert User.objects.of(login.tenant.pk).count() == 1
    assert answer.status in (302, 303, 400, 403)


def test_an_ip_address_with_too_many_sign_ups_must_wait(login: Login) -> None:
    suspect(login.tenant.pk, stage={"pre-user-registration": {"max_attempts": 1, "rate": 600_000}})
    page = opened(login, "Sign up")
    for email in ("", "new@example.test"):
        answer = login.browser.post(SIGN_UP, {**page.fields(), "email": email, "password": PASSWORD})
    assert answer.status == 429
    assert "Too many accounts" in answer.text


def test_a_new_user_is_logged_in_immediately_and_the_event_contains_the_client(login: Login) -> None:
    page = opened(login, "Sign up", login_hint="new@example.test")
    assert 'value="new@example.test"' in page.text
    answer = login.browser.post(SIGN_UP, {**page.fields(), "email": "new@example.test", "password": PASSWORD}, User_Agent="Test/2")
    assert "code" in answer.answer
    user = User.objects.of(login.tenant.pk).get(email="new@example.test")
    assert (user.email_verified, user.logins_count) == (False, 1)
    assert Session.objects.of(login.tenant.pk).get().user_id == user.pk
    event = json.loads(bytes(Event.objects.filter(tenant_id=login.tenant.pk, type="user.created").latest("pk").body))
    context = event["data"]["context"]
    assert context["client"]["id"] == login.client.client_id
    assert context["request"]["user_agent"] == "Test/2"
    assert context["request"]["hostname"] == login.browser.host


def test_a_client_can_request_the_sign_up_page_directly(login: Login) -> None:
    for asked in ({"prompt": "create"}, {"screen_hint": "signup"}):
        assert login.ask(**asked).location.startswith("/u/signup?state=")


def test_a_connection_with_usernames_requires_a_username(login: Login) -> None:
    options(login.connection, requires_username=True)
    page = opened(login, "Sign up")
    assert re.search(r'<label for="username">\s*Username', page.text)
    answer = login.browser.post(SIGN_UP, {**page.fields(), "email": "new@example.test", "password": PASSWORD})
    assert "Enter a username of 1 to 15" in answer.text


# --- Requesting a link ----------------------------------------------------------------------------------------------------------


def test_a_request_for_a_link_shows_the_same_page_for_known_and_unknown_addresses(login: Login) -> None:
    page = opened(login, "Forgot password\\?")
    answers = [login.browser.post(REQUEST, {**page.fields(), "username": name}) for name in ("ada@example.test", "nobody@example.test")]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text
    assert "Check your email" in answers[0].text
    for job in Job.objects.of(login.tenant.pk):
        assert run_job(job.pk)
    assert [message.to for message in mail.outbox] == [["ada@example.test"]]


def test_the_page_refuses_empty_requests_and_requests_over_the_limit(login: Login) -> None:
    page = opened(login, "Forgot password\\?")
    assert login.browser.post(REQUEST, page.fields()).status == 400
    statuses = [login.browser.post(REQUEST, {**page.fields(), "username": "ada@example.test"}).status for _ in range(11)]
    assert statuses == [200] * 10 + [429]


# --- Setting a password -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [RESET, UNBLOCK])
@pytest.mark.parametrize("secret", ["", "odd", "x" * 5000, "a\x00b"])
def test_an_unknown_link_does_nothing(login: Login, path: str, secret: str) -> None:
    assert login.browser.get(path, {"ticket": secret}).status == 404
    assert login.browser.post(path, {"ticket": secret, "password": NEW, "repeated": NEW}).status == 404


def test_opening_the_link_changes_nothing_and_the_page_sends_no_referrer(login: Login) -> None:
    secret = reset_link(login)
    for method in ("GET", "HEAD", "GET"):
        page = login.browser.send(method, f"{RESET}?ticket={secret}")
        assert page.status == 200
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert outcome(attempt(login.connection)) == login.user


def test_a_link_works_once(login: Login) -> None:
    secret = reset_link(login)
    assert "Password changed" in set_password(login, secret).text
    again = set_password(login, secret, "Third-Password-3")
    assert (again.status, "already been used" in again.text) == (410, True)
    assert login.browser.get(RESET, {"ticket": secret}).status == 410
    assert outcome(attempt(login.connection)) is Refusal.WRONG_CREDENTIALS
    assert outcome(attempt(login.connection, password=NEW)) == login.user


def test_a_link_for_the_first_password_works_once(login: Login) -> None:
    PasswordCredential.objects.filter(user=login.user).delete()
    secret, older = reset_link(login), reset_link(login)
    assert "Password changed" in set_password(login, secret).text
    assert [set_password(login, link, "Third-Password-3").status for link in (secret, older)] == [410, 410]
    assert outcome(attempt(login.connection, password=NEW)) == login.user


@pytest.mark.parametrize(
    ("password", "repeated", "words"),
    [(NEW, "other", "do not match"), ("short", "short", "too weak"), ("", "", "Choose a password."), ("x" * 5000, "x" * 5000, "Choose a")],
)
def test_a_refused_password_leaves_the_link_valid(login: Login, password: str, repeated: str, words: str) -> None:
    secret = reset_link(login)
    answer = set_password(login, secret, password, repeated)
    assert (answer.status, words in answer.text) == (400, True)
    assert set_password(login, secret).status == 200


def test_former_passwords_are_refused_if_the_connection_remembers_them(login: Login) -> None:
    options(login.connection, password_history={"enable": True, "size": 3})
    answer = set_password(login, reset_link(login), PASSWORD)
    assert "You have used this password before." in answer.text


def test_a_link_ends_after_an_hour_and_after_a_change_of_address_or_password(login: Login) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        secret = reset_link(login)
        clock.shift(timedelta(minutes=61))
        assert "expired" in set_password(login, secret).text
    moved = reset_link(login)
    update_user(tenant_id=login.tenant.pk, user_id=login.user.user_id, changes={"email": "new@example.test"})
    assert set_password(login, moved).status == 410
    update_user(tenant_id=login.tenant.pk, user_id=login.user.user_id, changes={"email": "ada@example.test"})
    older, newer = reset_link(login), reset_link(login)
    assert set_password(login, newer).status == 200
    assert set_password(login, older, "Third-Password-3").status == 410


def test_a_link_of_another_tenant_or_for_another_purpose_is_unknown(login: Login) -> None:
    secret = reset_link(login)
    assert Browser(new_tenant()).get(RESET, {"ticket": secret}).status == 404
    assert login.browser.post(UNBLOCK, {"ticket": secret}).status == 404


def test_only_the_digest_of_a_link_is_stored(login: Login) -> None:
    secret = reset_link(login)
    for model in (AccountTicket, Job, SignIn):
        assert secret not in str(list(model.objects.of(login.tenant.pk).values()))


def test_a_password_set_by_a_mailed_link_ends_sessions_tokens_and_blocks(login: Login) -> None:
    update_user(tenant_id=login.tenant.pk, user_id=login.user.user_id, changes={"email_verified": False})
    session_of(login.user)
    login.begin_session()
    protect(login.tenant.pk, max_attempts=1)
    outcome(attempt(login.connection, password=WRONG))
    assert outcome(attempt(login.connection)) is Refusal.TOO_MANY_ATTEMPTS
    secret = reset_link(Login(login.tenant, login.client, login.connection, login.user, Browser(login.tenant)))
    assert set_password(login, secret).status == 200
    assert not Session.objects.of(login.tenant.pk).exists()
    assert not RefreshToken.objects.of(login.tenant.pk).filter(revoked__isnull=True).exists()
    assert login.ask(prompt="none").answer["error"] == "login_required"
    assert outcome(attempt(login.connection, password=NEW)) == login.user
    user = User.objects.of(login.tenant.pk).get(pk=login.user.pk)
    assert user.email_verified
    assert user.last_password_reset is not None
    assert SignIn.objects.of(login.tenant.pk).get(type="scp").user_id == user.user_id


def test_a_used_or_expired_link_is_recognized_for_a_week(login: Login) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        used = reset_link(login)
        assert set_password(login, used).status == 200
        clock.shift(timedelta(seconds=1))
        expired = reset_link(login)
        clock.shift(timedelta(days=7))
        tasks.prune()
        pages = [login.browser.get(RESET, {"ticket": secret}) for secret in (used, expired)]
        assert [page.status for page in pages] == [410, 410]
        assert "This link has already been used" in pages[0].text
        assert "This link has expired" in pages[1].text
        clock.shift(timedelta(hours=2))
        tasks.prune()
        assert [login.browser.get(RESET, {"ticket": secret}).status for secret in (used, expired)] == [404, 404]
    assert not AccountTicket.objects.of(login.tenant.pk).exists()


# --- Lifting a block --------------------------------------------------------------------------------------------------------------


def test_the_mailed_link_lifts_the_block_once_when_the_user_submits_the_form(login: Login) -> None:
    protect(login.tenant.pk, max_attempts=2)
    for _ in range(2):
        outcome(attempt(login.connection, password=WRONG))
    secret = mailed_link(login.tenant.pk, Job.Type.UNBLOCK_EMAIL)
    page = login.browser.get(UNBLOCK, {"ticket": secret})
    assert page.headers["referrer-policy"] == "no-referrer"
    assert outcome(attempt(login.connection)) is Refusal.TOO_MANY_ATTEMPTS
    assert "You can log in again." in login.browser.post(UNBLOCK, page.fields()).text
    assert outcome(attempt(login.connection)) == login.user
    assert login.browser.post(UNBLOCK, page.fields()).status == 410
    assert SignIn.objects.of(login.tenant.pk).get(type="ublkdu").user_id == login.user.user_id


# --- Verifying an address -----------------------------------------------------------------------------------------------------------


def test_verifying_an_address_is_logged(login: Login) -> None:
    update_user(tenant_id=login.tenant.pk, user_id=login.user.user_id, changes={"email_verified": False})
    start_verification(tenant_id=login.tenant.pk, user_id=login.user.user_id)
    secret = mailed_link(login.tenant.pk, Job.Type.VERIFICATION_EMAIL)
    page = login.browser.get(VERIFY, {"ticket": secret})
    assert page.headers["referrer-policy"] == "no-referrer"
    assert not SignIn.objects.of(login.tenant.pk).exists()
    assert "Email address confirmed" in login.browser.post(VERIFY, page.fields()).text
    line = SignIn.objects.of(login.tenant.pk).get()
    assert (line.type, line.user_id, line.user_name) == ("sv", login.user.user_id, "ada@example.test")


# --- Branding -------------------------------------------------------------------------------------------------------------------


def test_the_branding_appears_only_at_its_tenant_and_without_inline_styles(login: Login) -> None:
    looks = {"logo_url": "https://cdn.example.test/logo.svg", "primary_color": "#ffcc00", "page_background": "#101010"}
    TenantSettings(tenant_id=login.tenant.pk, values={"friendly_name": "Analytical <Engines>", "branding": looks}).save()
    remembered_settings.clear()
    page = login.browser.get(RESET)
    assert 'alt="Analytical <Engines>"' in page.text
    assert "<Engines>" not in page.body.decode()
    policy = page.headers["content-security-policy"]
    assert "img-src 'self' https://cdn.example.test;" in policy
    assert "style-src 'self';" in policy
    assert "style=" not in page.text
    address = re.search(r'href="(/u/brand.css\?v=[0-9a-f]{16})"', page.text)
    assert address
    css = login.browser.send("GET", address.group(1))
    assert css.text == ":root { --brand: #ffcc00; --on-brand: #000000; }\n:root { --bg: #101010; --on-bg: #ffffff; }"
    assert "immutable" in css.headers["cache-control"]
    other = Browser(new_tenant())
    assert "ffcc00" not in other.send("GET", address.group(1)).text
    assert "Analytical" not in other.get(RESET).text


@pytest.mark.parametrize("logo", ["javascript:alert(1)", "http://cdn.example.test/l.svg", "https://a.test;script-src *", "//a.test/x"])
def test_a_logo_url_that_could_change_the_content_security_policy_is_not_shown(login: Login, logo: str) -> None:
    TenantSettings(tenant_id=login.tenant.pk, values={"branding": {"logo_url": logo, "primary_color": "red;}"}}).save()
    remembered_settings.clear()
    page = login.browser.get(RESET)
    assert "<img" not in page.text
    assert "brand.css" not in page.text
    assert "script-src" not in page.headers["content-security-policy"]
