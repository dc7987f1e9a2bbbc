"""The forms and the language for invited users. The email address is fixed, and a remembered account does not replace it."""

from __future__ import annotations

from django.core import mail

from authapi import tenant_settings
from authapi.invitations.offers import revoke_invitation
from authapi.models import TenantSettings
from identity.languages import speaking, written_time
from tests.authapi.browser import Browser, Page
from tests.authapi.hosted_html import Document, Element
from tests.authapi.invitations.conftest import GUEST, Host
from tests.factories.sign_in import person

GERMAN = {"Accept-Language": "de"}


def speak(host: Host, *codes: str) -> None:
    """Let the tenant enable these languages. The first is the default."""
    TenantSettings(tenant=host.login.tenant, values={"enabled_locales": list(codes)}).save()
    tenant_settings.remembered_settings.clear()


def typed(page: Page) -> dict[str, Element]:
    return {one.attributes["name"]: one for one in Document(page.body.decode()).elements if one.is_typed}


def test_an_invited_user_cannot_change_the_address_at_sign_up_and_login(host: Host) -> None:
    invitation = host.invite()
    for page, name in ((host.ask(invitation), "email"), (host.ask(invitation, prompt="login"), "username")):
        field, password = typed(page)[name], typed(page)["password"]
        assert (field.attributes["value"], "readonly" in field.attributes) == (GUEST, True)
        # The user fills in only the password.
        assert ("autofocus" in field.attributes, "autofocus" in password.attributes) == (False, True)
        assert 'class="mark"' not in page.text
        assert f"The invitation is for {GUEST}." in page.text


def test_a_remembered_account_is_not_offered_to_an_invited_user(host: Host) -> None:
    host.login.begin_session()
    host.browser.get("/v2/logout")
    assert list(typed(host.browser.follow(host.login.ask()))) == ["password"]
    page = host.ask(host.invite(), prompt="login")
    assert typed(page)["username"].attributes["value"] == GUEST
    assert "ada@example.test" not in page.text


def test_a_login_hint_of_the_application_does_not_replace_the_invited_address(host: Host) -> None:
    page = host.ask(host.invite(), prompt="login", login_hint="mallory@example.test")
    assert typed(page)["username"].attributes["value"] == GUEST
    assert "mallory" not in page.text


def test_the_account_of_an_invited_user_is_remembered_for_the_next_login(host: Host) -> None:
    person(host.login.connection, email=GUEST)
    host.log_in(host.ask(host.invite(), prompt="login"))
    page = host.browser.follow(host.login.ask(prompt="login"))
    assert (list(typed(page)), GUEST in page.text) == (["password"], True)


# --- Languages ------------------------------------------------------------------------------------------------------------


def test_a_mail_uses_the_requested_language_only_if_the_tenant_enables_it(host: Host) -> None:
    speak(host, "de", "fr", "en")
    for language, spoken in (("", "de"), ("fr", "fr"), ("ar", "de"), ("xx", "de")):
        invitation = host.invite(language=language)
        host.mailed_secret()
        with speaking(spoken):
            assert written_time(invitation.expires_at) in str(mail.outbox[-1].body)


def test_the_page_of_an_ended_link_is_in_the_language_of_the_mail(host: Host) -> None:
    speak(host, "en", "de", "fr")
    for language, spoken in (("fr", "fr"), ("", "de"), ("ar", "de")):
        invitation = host.invite(language=language)
        secret = host.mailed_secret()
        revoke_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=invitation.pk)
        page = Browser(host.login.tenant).send("GET", f"/u/invitation/open?ticket={secret}", headers=GERMAN)
        assert (page.status, page.headers["content-language"]) == (410, spoken)
        assert f'<html lang="{spoken}"' in page.text
