"""The guided setup of a real SCIM server in a real browser, with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from events.models import EventStream
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from provisioning.synchronization import work  # noqa: F401 (it registers the functions of the jobs)
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import PASSWORD, new_staff
from tests.factories.identity import make_user
from tests.factories.scim import TOKEN, RealServer, running_scim_server
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Page, chromium

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

BEGIN = "/admin/provisioning/connect/"
SUBMIT, NEXT = "#content input[type=submit]", ".connect-next a"
_MOST_STOPS = 150


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture
def page(web: WebProcess, tenant: Tenant) -> Iterator[Page]:
    """Return a tab at the first step of the setup, in which an administrator of the tenant is signed in."""
    with chromium() as browser:
        page = browser.page()
        page.show_as()
        page.open(f"http://127.0.0.1:{web.address[1]}/admin/login/?next={BEGIN}")
        page.fill("input[name=username]", new_staff(tenant).email)
        page.fill("input[name=password]", PASSWORD)
        page.click("#login-form button")
        arrived(page, BEGIN)
        yield page


@pytest.fixture
def server() -> Iterator[RealServer]:
    with running_scim_server() as running:
        yield running


def arrived(page: Page, path: str) -> None:
    page.until(f"location.pathname.endsWith({path!r}) && document.readyState === 'complete'", seconds=30)


def reach(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    page.evaluate("document.activeElement.blur()")
    for _ in range(_MOST_STOPS):
        page.press("Tab")
        if page.evaluate(f"document.activeElement.matches({selector!r})"):
            return
    pytest.fail(f"The keyboard does not reach {selector}.")


def press(page: Page, selector: str) -> None:
    reach(page, selector)
    page.press("Enter")


def enter(page: Page, selector: str, text: str) -> None:
    reach(page, selector)
    page.send("Input.insertText", text=text)


def judged(page: Page) -> None:
    """Check that a page is accessible in two widths and two color schemes, and does not violate the content security policy."""
    if AXE.exists():
        assert barriers_of(page) == [], page.text("h1")


def work_off(tenant: Tenant) -> None:
    """Run the newest job of the tenant, as a worker does."""
    job = Job.objects.of(tenant.pk).order_by("-created_at", "-pk")[0]
    run_job(job.pk)
    job.refresh_from_db()
    assert job.status == Job.Status.COMPLETED, job.status_details


def test_a_server_can_be_connected_with_the_keyboard_alone(
    page: Page, tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    make_user(connection=database_connection, email="anna@example.test", name="Anna Example")
    judged(page)
    press(page, "a[href$='/connect/new/']")
    arrived(page, "/connect/new/")
    enter(page, "#id_name", "Wiki")
    enter(page, "#id_SCIM_BASE_URL", "nowhere")
    enter(page, "#id_SCIM_BEARER_TOKEN", TOKEN)
    press(page, SUBMIT)
    page.until("document.querySelector('.errorlist') !== null && document.readyState === 'complete'")
    judged(page)
    page.evaluate("document.querySelector('#id_SCIM_BASE_URL').value = ''")
    enter(page, "#id_SCIM_BASE_URL", server.base_url)
    enter(page, "#id_SCIM_BEARER_TOKEN", TOKEN)
    press(page, SUBMIT)

    arrived(page, "/test/")
    press(page, SUBMIT)
    page.until("document.querySelector('section.panel[role=status]') !== null && document.readyState === 'complete'", seconds=30)
    judged(page)
    press(page, NEXT)
    arrived(page, "/preview/")
    assert page.evaluate("document.querySelector('#id_user').value") == "anna@example.test"
    press(page, SUBMIT)
    page.until("document.querySelector('section.panel[role=status]') !== null && document.readyState === 'complete'", seconds=30)
    assert "Would create the user" in page.text()
    judged(page)

    press(page, NEXT)
    arrived(page, "/dry-run/")
    judged(page)
    press(page, SUBMIT)
    page.until("document.querySelector('p[role=status]') !== null")
    work_off(tenant)
    # The page reloads itself until the job has ended.
    page.until("document.body.innerText.includes('1 created') && document.readyState === 'complete'", seconds=30)
    assert server.users() == []
    judged(page)

    press(page, NEXT)
    arrived(page, "/enable/")
    judged(page)
    press(page, SUBMIT)
    page.until("location.pathname.includes('/eventstream/')", seconds=30)
    page.until("document.querySelector('.messagelist') !== null")
    assert "Wiki is connected" in page.text(".messagelist")
    work_off(tenant)

    assert EventStream.objects.of(tenant.pk).get().status == EventStream.Status.ENABLED
    assert [user["userName"] for user in server.users()] == ["anna@example.test"]
