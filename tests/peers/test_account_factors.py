"""Factors that users add on their account page.

The tests use a real browser, as wide as a phone or a desktop, with a virtual authenticator.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.login.cookies import SESSION, cookie_name
from authapi.models import TenantSettings
from identity.models import Connection, EnrolledFactor
from tests.authapi.factors.passkeys import ON as PASSKEYS_ON
from tests.conformance.web_process import web_process
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import people, person, session_of, web_client
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium
from tests.peers.hosted.factors import code_now

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]


@pytest.fixture(scope="module")
def place(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[Connection, str]]:
    """Serve a tenant with the account page, and yield the connection of its users and the URL of the service."""
    with django_db_blocker.unblock():
        tenant = TenantFactory.create()
        factors = {"factors": ["webauthn-platform", "webauthn-roaming", "otp", "recovery-code"], "passkeys": True}
        TenantSettings(tenant=tenant, values={"account_page": {"enabled": True}}, second_factors=factors).save()
        with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
            connection = people(tenant, web_client(tenant)[0])
            connection.options = {**connection.options, **PASSKEYS_ON}
            connection.save(update_fields=["options"])
            yield connection, f"http://localhost:{web.address[1]}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


def with_passkeys(browser: Chromium, *, width: int) -> Page:
    page = browser.page()
    page.show_as(width=width)
    page.send("WebAuthn.enable", enableUI=False)
    able = dict.fromkeys(("hasResidentKey", "hasUserVerification", "isUserVerified", "automaticPresenceSimulation"), True)
    page.send("WebAuthn.addVirtualAuthenticator", options={"protocol": "ctap2", "transport": "internal", **able})
    return page


def landed(page: Page, path: str, selector: str) -> None:
    page.until(f"location.pathname === '{path}' && document.readyState === 'complete' && !!document.querySelector('{selector}')")


@pytest.mark.parametrize("width", [360, 1280], ids=["phone", "desktop"])
def test_a_user_can_add_an_app_and_a_passkey_but_no_device_twice(place: tuple[Connection, str], browser: Chromium, width: int) -> None:
    connection, service = place
    user = person(connection, email=f"adds-{width}@example.test")
    page = with_passkeys(browser, width=width)
    page.send("Network.setCookie", name=cookie_name(SESSION), value=session_of(user)[1], url=service)
    page.open(f"{service}/account/passkeys")
    page.click(".section a.button")
    landed(page, "/account/passkeys/add", "form[data-key=create]")
    page.click("form[data-key] button[type=submit]")
    landed(page, "/account/passkeys/name", "[name=name]")
    page.fill("[name=name]", "My telephone")
    page.click(".section form button[type=submit]")
    landed(page, "/account/passkeys", ".rows")
    assert "My telephone" in page.text(".rows")
    page.open(f"{service}/account/two-step/add")
    page.click("button[value=totp]")
    landed(page, "/account/two-step/add/totp", ".key")
    page.fill("[name=code]", code_now(page.text(".key").replace(" ", "")))
    page.click(".section form button[type=submit]")
    landed(page, "/account/two-step/add/totp", ".code")
    page.open(f"{service}/account/two-step/add")
    page.click("button[value=webauthn-platform]")
    landed(page, "/account/two-step/add/webauthn-platform", "form[data-key=create]")
    # The authenticator already has a passkey of this account, so it refuses to create another passkey.
    page.click("form[data-key] button[type=submit]")
    page.until("document.querySelector('form[data-key] [role=alert]').textContent.includes('set up for your account already')")
    kinds = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, is_confirmed=True).values_list("kind", flat=True)
    assert sorted(kinds) == ["passkey", "recovery-code", "totp"]
