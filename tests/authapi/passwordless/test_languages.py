"""The language of messages with codes and links, and of their pages. The request determines the language. No page mixes two languages."""

from __future__ import annotations

from typing import Any

import pytest

from authapi import tenant_settings
from authapi.grants.passwordless import PasswordlessGrant
from authapi.models import LoginTransaction, PasswordlessCode, TenantSettings
from identity.languages import LANGUAGES
from identity.models import Job
from identity.services.jobs import run_job
from identity.services.users import create_user
from tests.authapi.browser import Browser, Page
from tests.authapi.login.test_languages import language_of
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door
from tests.authapi.passwordless.messages import deliver, last_code
from tests.authapi.passwordless.test_links import asked_by_application, path_of
from tests.authapi.passwordless.test_pages import Visit
from tests.factories.sign_in import CALLBACK

GERMAN, FRENCH = {"Accept-Language": "de-AT,de;q=0.9"}, {"Accept-Language": "fr"}


def enable(door: Door, *codes: str) -> None:
    TenantSettings.objects.of(door.tenant.pk).delete()
    TenantSettings(tenant=door.tenant, values={"enabled_locales": list(codes)}).save()
    tenant_settings.remembered_settings.clear()


@pytest.fixture
def worldwide(door: Door) -> Door:
    enable(door, *LANGUAGES)
    return door


def start(door: Door, path: str = "/passwordless/start", body: Any = None, **headers: str) -> None:
    given = body or {**door.proof(), "connection": "email", "email": ADA, "send": "code"}
    answer = door.post(path, given, **headers)
    assert answer.status == 200, answer.body


def language_sent(door: Door) -> str:
    """Return the language in which the worker has written the newest message."""
    deliver(door.tenant.pk)
    newest = Job.objects.of(door.tenant.pk).filter(type=Job.Type.MESSAGE).order_by("-created_at").first()
    assert newest is not None
    language = str(newest.parameters["language"])
    assert PasswordlessCode.objects.of(door.tenant.pk).latest("pk").language == language
    return language


@pytest.mark.parametrize(
    ("headers", "language"),
    [
        ({"X_Request_Language": "de"}, "de"),
        ({"X_Request_Language": "de-CH, fr"}, "de"),
        ({"X_Request_Language": "fr", "Accept_Language": "de"}, "fr"),
        ({"Accept_Language": "ja;q=0.9, xx"}, "ja"),
        ({"X_Request_Language": "xx", "Accept_Language": "ar"}, "ar"),
        ({"X_Request_Language": "x" * 300, "Accept_Language": "\N{BULLET}"}, "en"),
        ({}, "en"),
    ],
)
def test_an_application_chooses_the_language_of_the_message(worldwide: Door, headers: dict[str, Any], language: str) -> None:
    start(worldwide, **headers)
    assert language_sent(worldwide) == language


def test_a_language_that_the_tenant_does_not_enable_is_not_used(door: Door) -> None:
    enable(door, "fr", "en")
    start(door, X_Request_Language="de", Accept_Language="de")
    assert language_sent(door) == "fr"


def test_a_message_has_the_language_of_the_user_if_the_request_has_none(worldwide: Door) -> None:
    create_user(tenant_id=worldwide.tenant.pk, connection=worldwide.email, email=ADA, user_metadata={"lang": "es"})
    start(worldwide)
    assert language_sent(worldwide) == "es"


def test_the_language_of_the_request_has_precedence_over_the_language_of_the_user(worldwide: Door) -> None:
    create_user(tenant_id=worldwide.tenant.pk, connection=worldwide.email, email=ADA, user_metadata={"lang": "es"})
    start(worldwide, X_Request_Language="ja")
    assert language_sent(worldwide) == "ja"


def test_a_challenge_can_name_the_language_too(worldwide: Door) -> None:
    assert PasswordlessGrant.name in worldwide.client.grant_types
    body = {**worldwide.proof(), "connection": "sms", "phone_number": NUMBER, "allow_signup": True}
    start(worldwide, "/otp/challenge", body, X_Request_Language="ar")
    assert language_sent(worldwide) == "ar"


def asked(door: Door, headers: dict[str, str], **changes: str) -> tuple[Visit, Page]:
    """Open the page that asks for the email address, in a browser with this language."""
    visit = Visit(door, Browser(door.tenant))
    wish = "&".join(f"{name}={value}" for name, value in changes.items())
    query = f"client_id={door.client.client_id}&response_type=code&redirect_uri={CALLBACK}&scope=openid&connection=email&{wish}"
    page = visit.browser.send("GET", f"/authorize?{query}", headers=headers)
    while page.status in (302, 303):
        page = visit.browser.send("GET", page.location, headers=headers)
    return visit, page


def test_the_message_of_a_page_has_the_language_of_the_page(worldwide: Door) -> None:
    visit, page = asked(worldwide, GERMAN)
    assert language_of(page) == "de"
    sent = visit.enter_address(page)
    assert (language_of(sent), language_sent(worldwide)) == ("de", "de")
    wrong = visit.enter_code(sent, "1")
    assert (wrong.status, language_of(wrong)) == (400, "de")


def test_the_language_requested_by_the_application_has_precedence_over_the_language_of_the_browser(worldwide: Door) -> None:
    visit, page = asked(worldwide, GERMAN, ui_locales="ja")
    assert language_of(page) == "ja"
    assert language_of(visit.enter_address(page)) == "ja"
    assert language_sent(worldwide) == "ja"


def link_in(door: Door, language: str) -> str:
    """Let an application send a link to a user with this language. Return the path of the link."""
    create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA, user_metadata={"lang": language})
    path = asked_by_application(door)
    deliver_link(door)
    return path


def deliver_link(door: Door) -> None:
    job = Job.objects.of(door.tenant.pk).get(type=Job.Type.PASSWORDLESS_CODE)
    run_job(job.pk)


def test_in_another_browser_a_link_opens_in_the_language_of_its_mail(worldwide: Door) -> None:
    browser, path = Browser(worldwide.tenant), link_in(worldwide, "es")
    first = browser.send("GET", path, headers=FRENCH)
    page = browser.send("GET", first.location, headers=FRENCH)
    assert language_of(page) == "es"
    assert LoginTransaction.objects.of(worldwide.tenant.pk).get().language == "es"
    browser.submit(page)
    used = browser.send("GET", path, headers=FRENCH)
    assert (used.status, language_of(used)) == (410, "es")


def test_the_language_requested_by_the_application_has_precedence_over_the_language_of_the_mail(worldwide: Door) -> None:
    create_user(tenant_id=worldwide.tenant.pk, connection=worldwide.email, email=ADA, user_metadata={"lang": "es"})
    path = asked_by_application(worldwide, ui_locales="ja")
    deliver_link(worldwide)
    browser = Browser(worldwide.tenant)
    page = browser.send("GET", browser.send("GET", path, headers=FRENCH).location, headers=FRENCH)
    assert language_of(page) == "ja"


def test_a_link_in_a_disabled_language_opens_in_the_language_of_the_browser(worldwide: Door) -> None:
    path = link_in(worldwide, "es")
    enable(worldwide, "en", "fr")
    browser = Browser(worldwide.tenant)
    page = browser.send("GET", browser.send("GET", path, headers=FRENCH).location, headers=FRENCH)
    assert language_of(page) == "fr"


def test_in_the_same_browser_a_link_opens_in_the_language_of_its_login(worldwide: Door) -> None:
    visit, page = asked(worldwide, GERMAN)
    visit.followed(visit.browser.submit(page, send="link", email=ADA))
    opened = visit.browser.send("GET", path_of(worldwide), headers=FRENCH)
    assert opened.location.startswith(CALLBACK)
    # The link is used up. The error page has the language of the mail, which was in German.
    assert language_of(visit.browser.send("GET", path_of(worldwide), headers=FRENCH)) == "de"


def test_the_page_of_an_unknown_link_uses_the_language_of_the_browser(worldwide: Door) -> None:
    page = Browser(worldwide.tenant).send("GET", "/u/passwordless/link?ticket=x", headers=GERMAN)
    assert (page.status, language_of(page)) == (404, "de")


def test_a_code_is_accepted_from_a_message_in_any_language(worldwide: Door) -> None:
    start(worldwide, X_Request_Language="ar")
    assert worldwide.redeem(last_code(worldwide.tenant.pk)).status == 200
