"""Passkeys in a real browser with a virtual authenticator. A page offers to create a passkey, and users log in with it.

They use the passkey with a button or with the autofill of the browser.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import EnrolledFactor, Tenant
from tests.authapi.factors.passkeys import set_passkeys
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.peers.accessibility import AXE
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium
from tests.peers.hosted.world import application_server
from tests.peers.test_staff_passkeys import is_clean

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not AXE.exists(), reason="chromium or axe-core is not installed: make test-peers"),
]
BUTTON = "form[data-key=get] button[type=submit]"
BACK = "location.pathname === '/callback'"
# The directory for pictures of the pages, or an empty text to take no pictures.
PICTURES = os.environ.get("PAGE_PICTURES", "")


class Place:
    """A tenant whose users can have passkeys, the URL of its service, and an application."""

    def __init__(self, tenant: Tenant, web: WebProcess, origin: str) -> None:
        self.tenant, self.origin = tenant, origin
        self.service = f"http://localhost:{web.address[1]}"
        self.client = web_client(tenant, redirect_uris=f"{origin}/callback")[0]
        self.connection = people(tenant, self.client)

    def ask_by(self, ui: str) -> None:
        set_passkeys(self.tenant, self.connection, offers_passkeys=True, options={"passkey_options": {"challenge_ui": ui}})

    def authorize(self) -> str:
        asked = f"response_type=code&client_id={self.client.client_id}&redirect_uri={self.origin}/callback&scope=openid&state=s"
        return f"{self.service}/authorize?{asked}&prompt=login"


@pytest.fixture(scope="module")
def place(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Place]:
    with django_db_blocker.unblock():
        tenant = TenantFactory.create()
        with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web, application_server() as origin:
            yield Place(tenant, web, origin)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


def with_authenticator(browser: Chromium) -> Page:
    page = browser.page()
    page.show_as()
    page.send("WebAuthn.enable", enableUI=False)
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    page.send("WebAuthn.addVirtualAuthenticator", options=options)
    return page


def look_at(page: Page, name: str) -> None:
    """Check a page with axe in every width and color scheme. Save pictures if `PICTURES` is not empty."""
    is_clean(page, name)
    for scheme, width in (("light", 360), ("dark", 1280)) if PICTURES else ():
        page.show_as(scheme=scheme, width=width)
        picture = page.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        Path(PICTURES, f"{name}-{scheme}-{width}.png").write_bytes(base64.b64decode(picture))
    page.show_as()


def test_a_user_who_accepts_the_offer_of_a_passkey_needs_no_password_afterwards(place: Place, browser: Chromium) -> None:
    place.ask_by("button")
    user = person(place.connection)
    page = with_authenticator(browser)
    page.open(place.authorize())
    page.until("document.querySelector('input[data-can-make]').value === '1'")
    page.until(f"!document.querySelector('{BUTTON}').closest('form').hidden")
    look_at(page, "login")
    page.fill("[name=username]", user.email or "")
    page.fill("[name=password]", PASSWORD)
    page.click("form:not([data-key]) button[type=submit]:not(.link)")
    page.until("location.pathname === '/u/passkey' && document.readyState === 'complete'")
    look_at(page, "offer")
    page.fill("[name=name]", "Laptop")
    page.click("form[data-key=create] button[type=submit]")
    page.until(BACK)
    [factor] = EnrolledFactor.objects.of(place.tenant.pk).filter(user=user)
    assert (factor.kind, factor.name) == ("passkey", "Laptop")

    page.open(place.authorize())
    page.until(f"!document.querySelector('{BUTTON}').closest('form').hidden")
    page.click(BUTTON)
    page.until(BACK)
    count = factor.sign_count
    factor.refresh_from_db()
    assert factor.sign_count > count

    # The browser offers the passkey in the field for the name, and the virtual authenticator accepts the offer immediately.
    place.ask_by("autofill")
    page.open(place.authorize())
    page.until(BACK)
    count = factor.sign_count
    factor.refresh_from_db()
    assert factor.sign_count > count
    assert page.complaints == []


def test_a_browser_that_cannot_create_a_passkey_gets_no_offer(place: Place, browser: Chromium) -> None:
    place.ask_by("both")
    user = person(place.connection, email="eve@example.test")
    page = browser.page()
    page.show_as()
    page.open(place.authorize())
    page.fill("[name=username]", user.email or "")
    page.fill("[name=password]", PASSWORD)
    page.click("form:not([data-key]) button[type=submit]:not(.link)")
    page.until(BACK)
