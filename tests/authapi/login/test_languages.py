"""The language of hosted pages and mails: chosen once, kept through a login, and never mixed with another language on one page."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core import mail
from django.utils.translation import get_language

from authapi import tenant_settings
from authapi.models import AccountTicket, LoginTransaction, TenantSettings
from config.catalogues.catalogues import ids_of, read_catalogue
from config.catalogues.judging import SAME
from identity.languages import LANGUAGES
from identity.mail.verification import start_verification
from identity.models import EmailTicket, Job
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, set_client
from tests.factories.sign_in import CALLBACK, PASSWORD

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.1"}


def enable(login: Login, *codes: str) -> None:
    TenantSettings.objects.of(login.tenant.pk).delete()
    TenantSettings(tenant=login.tenant, values={"enabled_locales": list(codes)}).save()
    tenant_settings.remembered_settings.clear()


@pytest.fixture
def worldwide(login: Login) -> Login:
    enable(login, *LANGUAGES)
    return login


def begun(login: Login, headers: dict[str, str], **asked: Any) -> Page:
    """Start a login and open its first page, with these headers on both requests."""
    good = {"client_id": login.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid"}
    query = urlencode({name: value for name, value in {**good, **asked}.items() if value is not None})
    answer = login.browser.send("GET", f"/authorize?{query}", headers=headers)
    assert answer.status == 302, answer.text
    return login.browser.send("GET", answer.location, headers=headers)


def language_of(page: Page) -> str:
    tag = re.search(r'<html lang="([a-z]+)" dir="(ltr|rtl)"', page.body.decode())
    assert tag, page.text
    assert (tag.group(2) == "rtl") is LANGUAGES[tag.group(1)].is_rtl
    assert page.headers["content-language"] == tag.group(1)
    assert "accept-language" in page.headers["vary"].lower()
    assert page.headers["cache-control"] == "no-store"
    return tag.group(1)


def pieces(page: Page) -> set[str]:
    """Return the texts of a page and the attributes that screen readers read."""
    source = re.sub(r"<(style|script)\b.*?</\1>", "", page.body.decode(), flags=re.DOTALL)
    said = [*re.split(r"<[^>]*>", source), *re.findall(r'(?:title|alt|aria-label|placeholder)="([^"]*)"', source)]
    return {text for piece in said if (text := " ".join(unescape(piece).split()))}


# Texts that are the same in English and in another language.
_SAME = {text for texts in SAME.values() for text in texts}


def english_on(page: Page) -> set[str]:
    """Return the texts of a page that equal an English text of the catalogue, with any values in place of the placeholders."""
    english = [text for message in read_catalogue("de") if message.id for text in ids_of(message) if text not in _SAME]
    patterns = []
    for text in english:
        parts = [re.escape(part) for part in re.split(r"%\(\w+\)[sd]|</?strong>", text)]
        if any(re.search("[A-Za-z]{2}", part) for part in parts):
            patterns.append(re.compile(".*?".join(parts)))
    return {piece for piece in pieces(page) if any(pattern.fullmatch(piece) for pattern in patterns)}


# --- Choosing --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wished", "header", "found"),
    [
        ("de-AT fr", "fr", "de"),
        ("xx ja", "fr", "ja"),
        ("xx", "fr-CA, de;q=0.5", "fr"),
        (None, "ar-EG", "ar"),
        (None, "", "en"),
        (None, "pt-BR", "en"),
    ],
)
def test_the_language_requested_by_the_client_has_precedence_over_the_language_of_the_browser(
    worldwide: Login, wished: str | None, header: str, found: str
) -> None:
    assert language_of(begun(worldwide, {"Accept-Language": header}, ui_locales=wished)) == found


def test_only_enabled_languages_are_used_and_advertised(login: Login) -> None:
    enable(login, "fr", "pt", "de-AT")
    assert language_of(begun(login, GERMAN, ui_locales="de pt")) == "fr"
    document = login.browser.get("/.well-known/openid-configuration").body
    assert b'"ui_locales_supported":["fr"]' in document.replace(b" ", b"")


def test_a_tenant_whose_stored_languages_have_no_translations_uses_english(login: Login) -> None:
    enable(login, "pt", "xx")
    assert language_of(begun(login, {"Accept-Language": "pt"})) == "en"


@pytest.mark.parametrize("wish", ["xx " * 3000 + "de", "d" * 7000, "../../de", "<b>de</b>"])
def test_invalid_and_overlong_language_requests_change_nothing(worldwide: Login, wish: str) -> None:
    assert language_of(begun(worldwide, {"Accept-Language": "fr"}, ui_locales=wish)) == "fr"
    assert language_of(begun(worldwide, {"Accept-Language": wish}, ui_locales="ja")) == "ja"


# --- Staying ---------------------------------------------------------------------------------------------------------------------


def test_the_language_stays_the_same_on_all_pages_of_a_login(worldwide: Login) -> None:
    set_client(worldwide, is_first_party=False)
    page = begun(worldwide, GERMAN)
    assert language_of(page) == "de"
    # The same login continues in a browser with another language.
    wrong = worldwide.browser.post(
        page.form_action(), {**page.fields(), "username": "ada@example.test", "password": "wrong"}, **{"Accept-Language": "ja"}
    )
    assert language_of(wrong) == "de"
    answer = worldwide.browser.submit(wrong, username="ada@example.test", password=PASSWORD)
    assert answer.location.startswith("/u/consent"), answer.location
    assert language_of(worldwide.browser.send("GET", answer.location, headers={"Accept-Language": "ja"})) == "de"
    assert LoginTransaction.objects.of(worldwide.tenant.pk).get().language == "de"


def test_a_language_that_the_tenant_disables_during_a_login_is_no_longer_used(worldwide: Login) -> None:
    page = begun(worldwide, GERMAN)
    enable(worldwide, "fr", "en")
    again = worldwide.browser.post(page.form_action(), {**page.fields(), "username": "", "password": ""})
    assert language_of(again) == "fr"


def test_an_error_page_prefers_the_language_of_the_request_to_that_of_the_browser(worldwide: Login) -> None:
    foreign = worldwide.browser.send("GET", "/authorize?client_id=nobody", headers=GERMAN)
    assert (foreign.status, language_of(foreign)) == (400, "de")
    asked = worldwide.browser.send("GET", "/authorize?client_id=nobody&ui_locales=ja", headers=GERMAN)
    assert language_of(asked) == "ja"
    lost = worldwide.browser.send("GET", "/u/login?state=gone", headers=GERMAN)
    assert language_of(lost) == "de"


def test_the_page_that_posts_an_answer_is_in_the_language_of_the_login(worldwide: Login) -> None:
    page = begun(worldwide, {}, ui_locales="fr", response_mode="form_post")
    posted = worldwide.log_in(page)
    assert "Retour à l\u2019application" in posted.text


def test_the_logout_page_keeps_the_language_that_the_client_requested(worldwide: Login) -> None:
    worldwide.begin_session()
    page = worldwide.browser.send("GET", "/oidc/logout?ui_locales=es", headers=GERMAN)
    assert language_of(page) == "es"
    assert language_of(worldwide.browser.submit(page, answer="no")) == "es"
    assert language_of(worldwide.browser.submit(page, answer="yes")) == "es"


# --- Whole pages -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["de", "fr", "es", "ja", "ar"])
def test_no_page_mixes_english_with_another_language(worldwide: Login, code: str) -> None:
    set_client(worldwide, is_first_party=False, name="Zettelkasten")
    asked = {"Accept-Language": code}
    page = begun(worldwide, asked)
    shown = [page, worldwide.browser.post(page.form_action(), {**page.fields(), "username": "ada@example.test", "password": "wrong"})]
    for path in re.findall(r'href="(/u/(?:signup|reset-password)[^"]*)"', page.body.decode()):
        form = worldwide.browser.send("GET", unescape(path), headers=asked)
        empty = {**form.fields(), "password": "short", "email": "no address"}
        shown += [form, worldwide.browser.post(unescape(path).partition("?")[0], empty)]
    assert len(shown) == 6
    answer = worldwide.log_in(page)
    shown.append(worldwide.browser.follow(answer))
    for path in ("/u/reset-password?ticket=x", "/u/unblock?ticket=x", "/u/email-verification?ticket=x", "/oidc/logout", "/u/logged-out"):
        shown.append(worldwide.browser.send("GET", path, headers=asked))
    for each in shown:
        assert (language_of(each), english_on(each)) == (code, set()), each.text


def test_the_check_for_mixed_languages_finds_english_text(login: Login) -> None:
    page = begun(login, {})
    assert {"Log in", "Password"} <= english_on(page)


# --- Mails -----------------------------------------------------------------------------------------------------------------------


def run_last(login: Login, kind: Job.Type) -> str:
    assert run_job(Job.objects.of(login.tenant.pk).filter(type=kind).latest("created_at").pk)
    message = mail.outbox[-1]
    return f"{message.subject}\n{message.body}"


def ask_for_reset(login: Login, page: Page) -> None:
    path = re.search(r'href="(/u/reset-password/request[^"]*)"', page.body.decode())
    assert path
    form = login.browser.send("GET", unescape(path.group(1)))
    login.browser.post("/u/reset-password/request", {**form.fields(), "username": "ada@example.test"})


def test_a_mail_and_the_page_of_its_link_have_the_language_of_the_request(worldwide: Login) -> None:
    ask_for_reset(worldwide, begun(worldwide, {}, ui_locales="de"))
    said = run_last(worldwide, Job.Type.PASSWORD_RESET_EMAIL)
    assert "Neues Passwort für" in said
    assert mail.outbox[-1].extra_headers["Content-Language"] == "de"
    assert AccountTicket.objects.of(worldwide.tenant.pk).get().language == "de"
    link = re.search(r"(/u/reset-password\?ticket=\S+)", said)
    assert link
    page = Browser(worldwide.tenant).send("GET", link.group(1), headers={"Accept-Language": "ja"})
    assert language_of(page) == "de"
    enable(worldwide, "ja")
    assert language_of(Browser(worldwide.tenant).send("GET", link.group(1))) == "ja"


def test_a_mail_that_no_user_requested_has_the_language_of_the_user_or_the_default(worldwide: Login) -> None:
    named: dict[str, Any] = {"tenant_id": worldwide.tenant.pk, "user_id": worldwide.user.user_id}
    enable(worldwide, "fr", "de", "en")
    start_verification(**named)
    assert "Confirmez votre" in run_last(worldwide, Job.Type.VERIFICATION_EMAIL)
    update_user(**named, changes={"user_metadata": {"locale": "de_CH"}})
    start_verification(**named)
    assert "Bestätigen" in run_last(worldwide, Job.Type.VERIFICATION_EMAIL)
    link = re.search(r"(/u/email-verification\?ticket=\S+)", str(mail.outbox[-1].body))
    assert link
    assert language_of(Browser(worldwide.tenant).send("GET", link.group(1), headers={"Accept-Language": "en"})) == "de"
    assert set(EmailTicket.objects.of(worldwide.tenant.pk).values_list("language", flat=True)) == {"fr", "de"}


def test_an_application_chooses_the_language_of_a_mail_and_gets_its_answer_in_english(worldwide: Login) -> None:
    body = urlencode({"client_id": worldwide.client.client_id, "email": "ada@example.test", "connection": worldwide.connection.name})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Request-Language": "es-MX", "Accept-Language": "ja"}
    answer = worldwide.browser.send("POST", "/dbconnections/change_password", body=body.encode(), headers=headers)
    assert answer.text == "We've just sent you an email to reset your password."
    assert "Establezca una contraseña nueva" in run_last(worldwide, Job.Type.PASSWORD_RESET_EMAIL)


# --- Isolation --------------------------------------------------------------------------------------------------------------------


def test_simultaneous_requests_in_two_languages_do_not_affect_each_other(worldwide: Login) -> None:
    codes = [*LANGUAGES] * 5

    def shown(code: str) -> tuple[str, set[str]]:
        page = Browser(worldwide.tenant).send("GET", "/u/logged-out", headers={"Accept-Language": code})
        return language_of(page), english_on(page) if code != "en" else set()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(shown, codes)) == [(code, set()) for code in codes]
    assert get_language() == "en"
    assert language_of(Browser(worldwide.tenant).send("GET", "/u/logged-out")) == "en"


@pytest.mark.parametrize("path", ["/admin/login/", "/admin/", "/admin/nothing-here/"])
def test_no_header_query_or_cookie_changes_the_language_of_the_admin(worldwide: Login, path: str) -> None:
    # A worker thread has just used another language.
    assert language_of(Browser(worldwide.tenant).send("GET", "/u/logged-out", headers=GERMAN)) == "de"
    staff = Browser(worldwide.tenant, host="localhost", cookies={"django_language": "de"})
    page = staff.send("GET", f"{path}?ui_locales=de&language=de", headers=GERMAN)
    while page.status in (301, 302):
        page = staff.send("GET", page.location, headers=GERMAN)
    assert '<html lang="en"' in page.text
    assert not {"Anmelden", "Passwort", "Benutzername"} & pieces(page)
