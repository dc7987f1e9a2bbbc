"""Second factors at a login, in a browser with a virtual authenticator. The window is as wide as a phone, then as a desktop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.models import Client, TenantSettings
from identity.models import EnrolledFactor, Tenant, User
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium
from tests.peers.hosted.world import application_server

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]


class Place:
    """A tenant with an application that always requires a second factor, and the URL of its service."""

    def __init__(self, tenant: Tenant, web: WebProcess, origin: str) -> None:
        self.tenant, self.origin = tenant, origin
        self.service = f"http://localhost:{web.address[1]}"
        self.client: Client = web_client(tenant, redirect_uris=f"{origin}/callback", settings={"second_factor_policy": "always"})[0]
        self.connection = people(tenant, self.client)

    def authorize(self) -> str:
        asked = f"response_type=code&client_id={self.client.client_id}&redirect_uri={self.origin}/callback&scope=openid&state=s"
        return f"{self.service}/authorize?{asked}&prompt=login"


@pytest.fixture(scope="module")
def place(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Place]:
    with django_db_blocker.unblock():
        tenant = TenantFactory.create()
        kinds = ["webauthn-platform", "webauthn-roaming", "otp", "recovery-code"]
        TenantSettings(tenant=tenant, values={}, second_factors={"factors": kinds}).save()
        with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web, application_server() as origin:
            yield Place(tenant, web, origin)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


def with_authenticator(browser: Chromium, *, width: int, transport: str) -> Page:
    page = browser.page()
    page.show_as(width=width)
    page.send("WebAuthn.enable", enableUI=False)
    options = {
        "protocol": "ctap2",
        "transport": transport,
        "hasResidentKey": False,
        "hasUserVerification": transport == "internal",
        "isUserVerified": transport == "internal",
        "automaticPresenceSimulation": True,
    }
    page.send("WebAuthn.addVirtualAuthenticator", options=options)
    return page


def log_in(page: Page, place: Place, user: User) -> None:
    page.open(place.authorize())
    page.fill("[name=username]", user.email or "")
    page.fill("[name=password]", PASSWORD)
    page.click("form button[type=submit]:not(.link)")


@pytest.mark.parametrize(
    ("width", "transport", "kind"), [(360, "internal", "webauthn-platform"), (1280, "usb", "webauthn-roaming")], ids=["phone", "desktop"]
)
def test_a_user_enrolls_a_key_and_logs_in_with_it(place: Place, browser: Chromium, width: int, transport: str, kind: str) -> None:
    user = person(place.connection, email=f"{kind}@example.test")
    page = with_authenticator(browser, width=width, transport=transport)
    log_in(page, place, user)
    page.until("location.pathname === '/u/mfa-enroll' && document.readyState === 'complete'")
    page.click(f"button[value={kind}]")
    page.until("!!document.querySelector('form[data-key=create]') && document.readyState === 'complete'")
    assert page.text("form[data-key] [role=alert]") == ""
    page.click("form[data-key] button[type=submit]")
    page.until("location.pathname === '/u/mfa/recovery-code' && document.readyState === 'complete'")
    page.click("[name=saved]")
    page.click("form button[type=submit]")
    page.until("location.pathname === '/callback'")
    [factor] = EnrolledFactor.objects.of(place.tenant.pk).filter(user=user, kind=kind)
    log_in(page, place, user)
    page.until("location.pathname === '/u/mfa' && document.readyState === 'complete'")
    page.click("form[data-key] button[type=submit]")
    page.until("location.pathname === '/callback'")
    before = factor.sign_count
    factor.refresh_from_db()
    assert factor.sign_count > before


def test_a_user_whose_key_is_missing_gets_an_error_and_can_use_another_method(place: Place, browser: Chromium) -> None:
    user = person(place.connection, email="elsewhere@example.test")
    EnrolledFactor(
        tenant_id=user.tenant_id, user=user, kind="webauthn-roaming", credential_id="a2V5", relying_party="localhost", public_key=b"key"
    ).save()
    page = with_authenticator(browser, width=360, transport="usb")
    log_in(page, place, user)
    page.until("location.pathname === '/u/mfa' && document.readyState === 'complete'")
    page.click("form[data-key] button[type=submit]")
    page.until("document.querySelector('form[data-key] [role=alert]').textContent.includes('No key was used')", seconds=70)
    page.until("document.activeElement.tagName === 'BUTTON'")
