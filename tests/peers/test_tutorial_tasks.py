"""The tasks in the admin that the tutorials and the README describe, in a real browser.

The tasks are to add a user, to read and redeliver a dead letter, and to find a login.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from pytest_django.plugin import DjangoDbBlocker

from events.log.numbering import number_tenant
from identity.models import Tenant, User
from provisioning.models import DeadLetter
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff
from tests.peers.admin_world import AdminWorld, admin_world
from tests.peers.chromium import PROGRAM, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

PASSWORD = "Correct-Horse-7-Battery"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture
def world(tenant: Tenant) -> Iterator[AdminWorld]:
    with admin_world(tenant) as made:
        yield made


@pytest.fixture
def page(web: WebProcess, world: AdminWorld) -> Iterator[Page]:
    """Return a tab with the start page of the admin, in which an administrator of the tenant is signed in."""
    session, base = browser_of(new_staff(world.tenant)), f"http://127.0.0.1:{web.address[1]}"
    with chromium() as browser:
        tab = browser.page()
        name = settings.SESSION_COOKIE_NAME
        tab.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base, httpOnly=True)
        tab.show_as(width=1440)
        tab.open(f"{base}/admin/")
        yield tab


def follow(page: Page, script: str) -> None:
    """Click the element that the JavaScript expression `script` selects, and wait for the next page."""
    page.evaluate("window.isOld = true")
    page.evaluate(f"{script}.click()")
    page.until("!window.isOld && document.readyState === 'complete'", seconds=20)


def go(page: Page, title: str) -> None:
    """Click the link to a list in the navigation."""
    follow(page, f"[...document.querySelectorAll('#nav-sidebar a')].find((link) => link.textContent.trim() === '{title}')")
    assert title in page.text("h1")


def link(text: str) -> str:
    return f"[...document.querySelectorAll('#content a, #content button')].find((link) => link.textContent.trim() === '{text}')"


def row_of(text: str) -> str:
    return f"[...document.querySelectorAll('#content tbody tr')].find((row) => row.textContent.includes('{text}'))"


def test_a_user_can_be_added_and_the_event_appears_in_the_log(page: Page, world: AdminWorld) -> None:
    go(page, "Users")
    follow(page, link("Add user"))
    page.fill("#id_email", "mary@example.test")
    page.fill("#id_name", "Mary Somerville")
    page.fill("input[type=password]", PASSWORD)
    follow(page, "document.querySelector('input[name=_save]')")
    user = User.objects.of(world.tenant.pk).get(email="mary@example.test")
    assert user.connection.name == "people"
    number_tenant(world.tenant.pk)

    go(page, "Event log")
    follow(page, f"{row_of('mary@example.test')}.querySelector('th a')")
    assert "user.created" in page.text("h1")
    assert page.complaints == []


def test_the_page_of_a_dead_letter_shows_the_error_and_has_a_button_to_redeliver(page: Page, world: AdminWorld) -> None:
    go(page, "Dead letters")
    assert "answered 409" in page.evaluate(f"{row_of('Ada Lovelace')}.innerText")
    follow(page, f"{row_of('Ada Lovelace')}.querySelector('th a')")
    assert "answered 409 [uniqueness]" in page.text(".verdict")
    page.evaluate("document.querySelectorAll('#content details').forEach((folded) => { folded.open = true })")
    assert "POST" in page.text("#content")
    assert "uniqueness" in page.text("#content")
    follow(page, link("Attempts and times"))
    assert "Attempt 1" in page.text("#content")

    go(page, "Dead letters")
    follow(page, f"{row_of('Ada Lovelace')}.querySelector('button[formaction]')")
    eventually(lambda: DeadLetter.objects.get(pk=world.letter.pk).redelivered_at is not None)
    assert page.complaints == []


def test_a_login_is_in_the_sign_in_log_and_on_the_page_of_the_user(page: Page, world: AdminWorld) -> None:
    go(page, "Sign-in log")
    assert "Shop" in page.evaluate(f"{row_of('Ada Lovelace')}.innerText")
    go(page, "Users")
    follow(page, f"{row_of(world.ada.user_id)}.querySelector('th a')")
    follow(page, link("Access"))
    follow(page, link("Security"))
    assert "Shop" in page.text("#content")
    assert page.complaints == []
