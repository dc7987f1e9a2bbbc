"""Second factors of staff in a real browser with a virtual authenticator: passkeys and app codes, also with the keyboard alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.contrib.sessions.backends.db import SessionStore
from pytest_django.plugin import DjangoDbBlocker

from foundation.secrets import totp
from identity.models import Staff, StaffFactor, Tenant
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import PASSWORD, new_staff
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

START = "location.pathname === '/admin/' && document.readyState === 'complete'"
PASSKEY_BUTTON = ".passkey-form:not([hidden]) button[type=submit]"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn", STAFF_SECOND_FACTOR="all") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    return new_staff(tenant)


class Person:
    """A staff member with a tab and a virtual authenticator. The methods are the actions of the staff member."""

    def __init__(self, browser: Chromium, web: WebProcess, *, verifies: bool = True) -> None:
        self.base = f"http://localhost:{web.address[1]}"
        self.page: Page = browser.page()
        self.page.show_as()
        self.page.send("WebAuthn.enable", enableUI=False)
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": verifies,
            "automaticPresenceSimulation": True,
        }
        self.authenticator = self.page.send("WebAuthn.addVirtualAuthenticator", options=options)["authenticatorId"]

    def open(self, path: str) -> Page:
        self.page.open(self.base + path)
        return self.page

    def give_password(self, staff: Staff) -> None:
        self.open("/admin/login/?next=/admin/")
        self.page.fill("input[name=username]", staff.email)
        self.page.fill("input[name=password]", PASSWORD)
        self.page.click("#login-form button")
        self.at("/admin/account/")

    def at(self, path: str) -> None:
        self.page.until(f"location.pathname === '{path}' && document.readyState === 'complete'")

    def add_passkey(self) -> None:
        self.open("/admin/account/passkey/")
        self.page.click(PASSKEY_BUTTON)
        self.page.until("document.querySelectorAll('.recovery-codes li').length === 10")

    def log_out(self) -> None:
        self.page.click("#logout-form button")
        self.page.until("location.pathname !== '/admin/account/' && document.readyState === 'complete'")

    def grow_old(self) -> None:
        """Set the time of the last proof of identity in the session to 1970, so that the proof is not recent."""
        cookies = self.page.send("Network.getCookies", urls=[self.base])["cookies"]
        session = SessionStore(next(cookie["value"] for cookie in cookies if cookie["name"] == "staff"))
        session["proof"] = {**session["proof"], "at": 0}
        session.save()

    def is_verified(self, *, verifies: bool) -> None:
        self.page.send("WebAuthn.setUserVerified", authenticatorId=self.authenticator, isUserVerified=verifies)

    def tab_to(self, script: str) -> None:
        """Press Tab until `script` is true for the focused element, which is `focused` in the script."""
        for _ in range(40):
            if self.page.evaluate(f"((focused) => {script})(document.activeElement)"):
                return
            self.page.press("Tab")
        raise AssertionError(f"no element that matches {script} gets the focus")


@pytest.fixture
def person(browser: Chromium, web: WebProcess) -> Person:
    return Person(browser, web)


def is_clean(page: Page, name: str) -> None:
    """Check that axe finds no fault on a page and that the page fits the window. Check this in both color schemes and two widths."""
    assert barriers_of(page, is_whole=True) == [], name


def test_an_account_that_must_have_a_factor_adds_a_passkey_and_signs_in_with_it(person: Person, staff: Staff) -> None:
    person.give_password(staff)
    assert "must have a second factor" in person.page.text()
    person.add_passkey()
    assert person.page.complaints == []
    person.open("/admin/")
    assert "Your account" in person.page.evaluate("document.querySelector('.account-menu').textContent")

    person.open("/admin/account/")
    person.log_out()
    person.open("/admin/login/?next=/admin/")
    person.page.click(PASSKEY_BUTTON)
    person.page.until(START)
    factor = StaffFactor.objects.get(staff=staff)
    assert factor.last_used_at is not None
    assert factor.sign_count > 0
    assert person.page.complaints == []


def test_a_passkey_without_user_verification_is_refused(person: Person, staff: Staff) -> None:
    person.give_password(staff)
    person.add_passkey()
    person.open("/admin/account/")
    person.log_out()
    person.is_verified(verifies=False)
    person.open("/admin/login/?next=/admin/")
    person.page.click(PASSKEY_BUTTON)
    person.page.until("document.querySelector('.passkey-state').textContent !== ''")

    assert "No passkey was used" in person.page.text(".passkey-state")
    assert person.page.evaluate("document.activeElement.type") == "submit"
    assert person.open("/admin/").evaluate("location.pathname") == "/admin/login/"


def test_an_app_can_be_added_and_used_with_the_keyboard_alone(person: Person, staff: Staff) -> None:
    person.give_password(staff)
    page = person.open("/admin/account/app/")
    # The whole QR code must be visible, because a camera needs its three corner marks and its margin.
    width = page.evaluate("document.querySelector('.qr').getBoundingClientRect().width")
    drawn = page.evaluate("document.querySelector('.qr svg path').getBoundingClientRect().width")
    assert 150 < drawn <= width
    secret = page.text(".app-key").replace(" ", "")
    person.tab_to("focused.name === 'code'")
    page.send("Input.insertText", text=totp.code_of(secret, totp.step_at(time.time()) - 1))
    page.press("Enter")
    page.until("document.querySelectorAll('.recovery-codes li').length === 10")
    recovery = page.text(".recovery-codes li")
    person.open("/admin/account/")
    person.log_out()

    person.open("/admin/login/?next=/admin/")
    person.tab_to("focused.name === 'username'")
    page.send("Input.insertText", text=staff.email)
    person.tab_to("focused.name === 'password'")
    page.send("Input.insertText", text=PASSWORD)
    page.press("Enter")
    person.at("/admin/login/factor/")
    # Wait for the focus: Chromium moves it to a field with `autofocus` only when it paints the page.
    page.until("document.activeElement.name === 'code'")
    page.send("Input.insertText", text="000000")
    page.press("Enter")
    page.until("document.querySelector('.errornote') !== null")
    person.tab_to("focused.name === 'code'")
    page.send("Input.insertText", text=recovery)
    page.press("Enter")
    page.until(START)
    assert page.complaints == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
def test_every_page_of_staff_factors_is_accessible_in_every_color_scheme_and_width(person: Person, staff: Staff) -> None:
    page = person.open("/admin/login/")
    is_clean(page, "sign in")
    person.give_password(staff)
    is_clean(page, "account without a factor")
    for path in ("/admin/account/app/", "/admin/account/passkey/"):
        is_clean(person.open(path), path)
    page.click(PASSKEY_BUTTON)
    page.until("document.querySelectorAll('.recovery-codes li').length === 10")
    is_clean(page, "recovery codes")
    is_clean(person.open("/admin/account/"), "account")
    person.grow_old()
    is_clean(person.open("/admin/account/app/"), "proof")
    assert page.evaluate("location.pathname") == "/admin/account/prove/"
    page.click(PASSKEY_BUTTON)
    person.at("/admin/account/app/")
    factor = StaffFactor.objects.get(staff=staff)
    is_clean(person.open(f"/admin/account/factors/{factor.pk}/remove/"), "removal")
    person.open("/admin/account/")
    person.log_out()
    person.open("/admin/login/")
    page.fill("input[name=username]", staff.email)
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button")
    person.at("/admin/login/factor/")
    is_clean(page, "second factor")
    page.click(PASSKEY_BUTTON)
    page.until(START)
