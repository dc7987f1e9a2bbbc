"""Logins in an unknown browser: when the user gets a mail, and how attempts to suppress the mail fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.db import models

from authapi import tasks  # noqa: F401  (the import registers what the jobs do)
from authapi.login.browser_words import browser_in
from authapi.models import AccountTicket, KnownBrowser, SignIn, TenantSettings
from authapi.services.account_tickets import issue
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tenant_settings import remembered_settings
from identity.models import Job, User
from identity.services.jobs import run_job
from identity.services.passwords import set_password
from tests.authapi.browser import Browser
from tests.authapi.login.conftest import Login
from tests.factories.sign_in import PASSWORD, person

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0 <b>evil</b>"


@pytest.fixture(autouse=True)
def _told(login: Login) -> None:
    wanted(login, "own")
    # This user has logged in before.
    has_logged_in(login.user)


def has_logged_in(user: User) -> None:
    models.QuerySet(User).filter(pk=user.pk).update(logins_count=3)


def wanted(login: Login, which: str) -> None:
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"new_device_mails": which})
    remembered_settings.clear()


def log_in(login: Login, browser: Browser | None = None, **named: str) -> Browser:
    """Log in with a browser, which is a new one by default."""
    login.browser = browser or Browser(login.tenant)
    answer = login.log_in(login.ask(prompt="login"), **named)
    assert "code" in answer.answer, answer.text
    return login.browser


def mails(login: Login) -> list[str]:
    """Let the worker send the waiting mails, and return the mails sent since the last call."""
    for job in Job.objects.of(login.tenant.pk).filter(type=Job.Type.NEW_DEVICE_EMAIL, status=Job.Status.PENDING):
        assert run_job(job.pk)
    sent = [str(message.body) for message in mail.outbox if "New browser" in str(message.subject)]
    mail.outbox.clear()
    return sent


def test_only_the_first_login_in_a_new_browser_is_reported(login: Login, settings: Any) -> None:
    settings.COUNTRY_HEADER = "CF-IPCountry"
    with time_machine.travel(BEGIN, tick=False):
        login.browser = Browser(login.tenant)
        sender = {"User-Agent": FIREFOX, "CF-IPCountry": "DE"}
        form = login.browser.follow(login.ask())
        fields = {**form.fields(), "username": "ada@example.test", "password": PASSWORD}
        assert "code" in login.browser.post(form.form_action(), fields, Origin=f"http://{login.browser.host}", **sender).answer
        (told,) = mails(login)
    for words in ("Time: 1 May 2031, 12:00 UTC", "Browser: Firefox on Windows", "Country: DE", "/u/reset-password?ticket="):
        assert words in told
    assert "evil" not in told
    # The mail is sent before a second factor is proven.
    assert "has logged in" not in told
    assert "If your account has a second factor, that browser must also pass the second factor before it is logged in." in " ".join(
        told.split()
    )
    line = SignIn.objects.of(login.tenant.pk).get(type="new_device")
    assert (line.is_success, line.user_id, line.details) == (
        True, login.user.user_id, {"country": "DE", "browser": "Firefox", "system": "Windows"},
    )  # fmt: skip
    with time_machine.travel(BEGIN, tick=False):
        log_in(login, login.browser)
        assert mails(login) == []
        log_in(login)
        assert len(mails(login)) == 1


def test_no_mail_is_sent_for_the_first_login_or_while_mails_are_off(login: Login) -> None:
    new = person(login.connection, email="new@example.test")
    first = log_in(login, identifier="new@example.test")
    assert mails(login) == []
    # Browsers become known from the first login, even while the mails are off.
    wanted(login, "off")
    second = log_in(login, identifier="new@example.test")
    wanted(login, "own")
    for browser in (first, second):
        log_in(login, browser, identifier="new@example.test")
    assert mails(login) == []
    assert KnownBrowser.objects.of(login.tenant.pk).filter(user=new).count() == 2


def test_cookies_of_another_user_do_not_suppress_the_mail(login: Login) -> None:
    person(login.connection, email="eve@example.test")
    hers = log_in(login, identifier="eve@example.test")
    log_in(login, hers)
    (told,) = mails(login)
    assert "Browser: unknown" in told
    # This browser is now a known browser of both users. A browser with a forged cookie is still unknown.
    log_in(login, hers, identifier="eve@example.test")
    log_in(login, hers)
    assert mails(login) == []
    forged = Browser(login.tenant)
    forged.cookies["device"] = KnownBrowser.objects.of(login.tenant.pk).filter(user=login.user).latest("pk").digest
    log_in(login, forged)
    assert len(mails(login)) == 1


def test_every_browser_is_unknown_again_after_a_new_password(login: Login) -> None:
    thief = log_in(login)
    assert len(mails(login)) == 1
    set_password(login.user, "Fresh-Horse-Staple-9")
    assert not KnownBrowser.objects.of(login.tenant.pk).filter(user=login.user).exists()
    log_in(login, thief, password="Fresh-Horse-Staple-9")
    assert len(mails(login)) == 1


def test_many_requested_links_do_not_suppress_the_mail(login: Login) -> None:
    for _ in range(10):
        issue(user=login.user, purpose=AccountTicket.Purpose.PASSWORD_RESET, client=None, email="ada@example.test")
    log_in(login)
    (told,) = mails(login)
    assert "ticket=" not in told
    assert "contact the people who run the application" in told


def test_the_number_of_mails_is_limited_and_old_rows_are_deleted(login: Login) -> None:
    rows = KnownBrowser.objects.of(login.tenant.pk).filter(user=login.user)
    own: dict[str, Any] = {"tenant_id": login.tenant.pk, "user": login.user, "created_at": BEGIN, "last_seen_at": BEGIN}
    rows.bulk_create(KnownBrowser(digest=str(number), told_at=BEGIN, **own) for number in range(10))
    with time_machine.travel(BEGIN + timedelta(hours=1), tick=False) as clock:
        log_in(login)
        assert mails(login) == []
        clock.shift(timedelta(days=1))
        rows.bulk_create(KnownBrowser(digest=f"old {number}", **own) for number in range(120))
        log_in(login)
        assert len(mails(login)) == 1
        assert rows.count() == 100
        assert rows.latest("last_seen_at").told_at is not None


def test_submitting_a_form_twice_causes_one_mail(login: Login) -> None:
    login.browser = Browser(login.tenant)
    form = login.browser.follow(login.ask())
    before = dict(login.browser.cookies)
    fields = {**form.fields(), "username": "ada@example.test", "password": PASSWORD}
    for _ in range(2):
        login.browser.cookies = dict(before)
        login.browser.post(form.form_action(), fields, Origin=f"http://{login.browser.host}")
    assert len(mails(login)) == 1


def test_no_mail_is_sent_without_an_email_address_or_with_an_existing_session(login: Login) -> None:
    browser = log_in(login)
    mails(login)
    # The state after an upgrade: a session exists, but no cookie of a known browser.
    browser.cookies.pop("device")
    browser.cookies.pop("browser", None)
    log_in(login, browser)
    assert mails(login) == []
    login.connection.options = {**login.connection.options, "requires_username": True}
    login.connection.save()
    has_logged_in(person(login.connection, email=None, email_verified=False, username="ada"))
    log_in(login, identifier="ada")
    assert not Job.objects.of(login.tenant.pk).filter(type=Job.Type.NEW_DEVICE_EMAIL, status=Job.Status.PENDING).exists()


def test_names_of_browsers_come_from_a_fixed_list() -> None:
    edge = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0"
    iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 CriOS/140.0 Mobile/15E148 Safari/604.1"
    assert browser_in(edge) == {"browser": "Edge", "system": "macOS"}
    assert browser_in(iphone) == {"browser": "Chrome", "system": "iOS"}
    assert browser_in("curl/8 {{ url }}") == {"browser": "", "system": ""}


def test_null_restores_the_default_of_the_setting_for_these_mails(login: Login) -> None:
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"new_device_mails": None})
    assert "new_device_mails" not in TenantSettings.objects.of(login.tenant.pk).get().values
    remembered_settings.clear()
    assert remembered_settings.get(login.tenant.pk).new_device_mails == "off"
