"""Every page of the admin in a real browser: accessible in light and dark mode, not wider than a phone, and usable with the keyboard.

The list of pages comes from the registry of the admin site, so that new pages are tested without a change of this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from events.log.numbering import number_tenant
from identity.models import Connection, Job, Tenant, User
from identity.services.jobs import run_job
from identity.services.users import new_user
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.admin_pages import beyond_budget, every_page, name_of
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

# The size in bytes of the page and of all files that it loads, when nothing is cached.
_BYTES = """[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0)"""
# The number of pixels by which the table of a list is wider than its place on the page.
_BEYOND_LIST = "((list) => list ? list.scrollWidth - list.clientWidth : 0)(document.querySelector('#changelist .results'))"
# The sum of all unexpected moves of the content. Users notice the moves if the sum is above 0.1 (Web Vitals, "Cumulative Layout Shift").
_SHIFT = """new Promise((done) => {
    let sum = 0;
    const add = (entries) => entries.forEach(({value}) => { sum += value; });
    const observer = new PerformanceObserver((list) => add(list.getEntries()));
    observer.observe({type: 'layout-shift', buffered: true});
    setTimeout(() => { add(observer.takeRecords()); done(sum); }, 100);
})"""
_MOST_SHIFT = 0.1
# The limit of Tab presses, larger than the number of focusable elements of any page. The navigation alone has sixty.
_MOST_STOPS = 200


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def rows(tenant: Tenant) -> Rows:
    return Rows(tenant)


@pytest.fixture
def session(tenant: Tenant) -> Client:
    """Return the session of an operator who has selected a tenant and can open every page."""
    operator = browser_of(new_staff(None))
    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    return operator


@pytest.fixture
def page(web: WebProcess, browser: Chromium, session: Client) -> Page:
    """Return a tab of the browser that has the session of the operator."""
    tab = browser.page()
    name = settings.SESSION_COOKIE_NAME
    tab.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base_of(web), httpOnly=True)
    if AXE.exists():
        tab.send("Page.addScriptToEvaluateOnNewDocument", source=AXE.read_text())
    tab.show_as()
    return tab


def base_of(web: WebProcess) -> str:
    return f"http://127.0.0.1:{web.address[1]}"


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
def test_every_page_is_accessible_and_within_its_limits(page: Page, web: WebProcess, session: Client, rows: Rows) -> None:
    barriers: dict[str, list[str]] = {}
    kilobytes = {}
    for number, address in enumerate(every_page(session, rows)):
        # Axe needs timers. The content security policy of the preview of the branding contains a sandbox, which stops timers. So switch off
        # the policy of this page.
        page.send("Page.setBypassCSP", enabled=address == reverse("admin:authapi_branding_preview"))
        page.open(base_of(web) + address)
        kilobytes[name_of(address)] = ceil(page.evaluate(_BYTES) / 1000)
        if wrong := barriers_of(page, is_whole=number == 0):
            barriers[address] = wrong
        # `barriers_of` has set the width of a desktop again.
        if (beyond_list := page.evaluate(_BEYOND_LIST)) > 0:
            barriers.setdefault(address, []).append(f"the list is {beyond_list} pixels wider than a desktop")
    assert not barriers, json.dumps(barriers, indent=1)
    beyond = beyond_budget("kilobytes", kilobytes)
    assert not beyond, "\n".join(beyond)


def test_a_connection_can_be_created_from_the_start_page_with_the_keyboard_alone(page: Page, web: WebProcess, tenant: Tenant) -> None:
    page.open(base_of(web) + reverse("admin:index"))
    page.press("Tab")
    assert "Skip to main content" in page.evaluate("document.activeElement.textContent")
    page.press("Enter")
    page.until("document.activeElement.id === 'content-start'")
    # The first steps are at the top of the start page of a new tenant.
    _tab_to(page, "document.activeElement.textContent.trim() === 'Add a connection'")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter")
    page.until(f"location.pathname === {json.dumps(reverse('admin:identity_connection_add'))} && document.readyState === 'complete'")
    _tab_to(page, "document.activeElement.name === 'name'")
    page.send("Input.insertText", text="people")
    _tab_to(page, "document.activeElement.name === '_save'")
    page.press("Enter")

    eventually(lambda: Connection.objects.of(tenant.pk).filter(name="people").exists())
    assert page.complaints == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
def test_the_menu_of_the_account_is_readable_in_light_and_dark_mode(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:index"))
    page.click(".account-menu summary")
    page.until("document.querySelector('.account-menu').open")
    assert "Log out" in page.text(".account-menu")
    assert barriers_of(page, is_whole=True) == []


def test_the_content_does_not_move_while_a_page_loads(page: Page, web: WebProcess, rows: Rows) -> None:
    rows.of(User)
    for address in (reverse("admin:index"), reverse("admin:identity_user_changelist"), reverse("admin:identity_connection_add")):
        page.open(base_of(web) + address)
        assert page.evaluate(_SHIFT) < _MOST_SHIFT, address
        assert page.evaluate("document.getElementById('nav-sidebar').getBoundingClientRect().left") >= 0


def test_navigation_and_search_can_be_reached_at_any_scroll_position(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:index"))
    page.evaluate("scrollTo(0, 300)")
    page.until("scrollY === 300")
    assert page.evaluate("document.getElementById('nav-sidebar').getBoundingClientRect().top") == 0
    assert page.evaluate("document.elementFromPoint(100, 60).closest('#nav-sidebar') !== null")
    page.evaluate("document.activeElement.blur()")
    page.press("/")
    assert page.evaluate("document.activeElement.matches('.global-search input') && document.activeElement.value === ''")


def test_the_navigation_is_open_without_script(page: Page, web: WebProcess) -> None:
    page.show_as(width=1440)
    page.without_script()
    page.open(base_of(web) + reverse("admin:index"))
    shown = page.evaluate("[matchMedia('(scripting: none)').matches, getComputedStyle(document.getElementById('nav-sidebar')).visibility]")
    page.without_script(is_off=False)
    assert shown == [True, "visible"]


def test_the_navigation_can_be_searched_and_used_with_the_keyboard(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:index"))
    _tab_to(page, "document.activeElement.id === 'nav-filter'")
    page.send("Input.insertText", text="members of gr")
    page.until("[...document.querySelectorAll('#nav-sidebar .nav-more')].every((group) => group.open)")
    _tab_to(page, "document.activeElement.textContent.trim() === 'Members of groups'")
    page.press("Enter")

    page.until(
        f"location.pathname === {json.dumps(reverse('admin:identity_groupmember_changelist'))} && document.readyState === 'complete'"
    )
    assert page.evaluate("document.querySelector('#nav-sidebar [aria-current=page]').closest('details').open")
    assert page.complaints == []


def test_the_numbers_in_the_table_of_a_chart_are_links(page: Page, web: WebProcess, rows: Rows) -> None:
    rows.of(User)
    number_tenant(rows.tenant.pk)
    page.open(base_of(web) + reverse("admin:index"))
    _tab_to(page, "document.activeElement.matches('.chart-data summary')")
    page.press("Enter")
    page.until("document.querySelector('.chart-data').open")
    _tab_to(page, "document.activeElement.matches('.chart-table a')")
    count = page.evaluate("document.activeElement.textContent")
    page.press("Enter")

    page.until("location.search.includes('since=') && document.readyState === 'complete'")
    assert page.evaluate("document.querySelectorAll('#result_list tbody tr').length") == int(count) > 0


def test_staff_can_select_all_matching_rows_and_follow_the_progress_of_an_action(page: Page, web: WebProcess, rows: Rows) -> None:
    users = [new_user(rows.of(Connection), f"u{number:03}", {"email": f"user{number}@example.test"}) for number in range(120)]
    User.objects.of(rows.tenant.pk).bulk_create(users)
    page.open(base_of(web) + reverse("admin:identity_user_changelist"))
    page.click("#action-toggle")
    page.click(".actions .question a")
    assert "All 120 selected" in page.text(".actions")
    page.fill("select[name=action]", "block_selected")
    page.click(".actions button[name=index]")
    page.until("document.querySelector('input[name=confirmed]') && document.readyState === 'complete'")
    assert "Block 120 users?" in page.text("h1")
    barriers = barriers_of(page)
    page.fill("textarea[name=reason]", "They left.")
    page.click("input[type=submit]")
    page.until("location.pathname.includes('/identity/job/') && document.readyState === 'complete'")

    assert "0 of 120" in page.text("#content")
    assert [*barriers, *barriers_of(page)] == []
    assert run_job(Job.objects.of(rows.tenant.pk).get(type=Job.Type.BULK_ACTION).pk)
    # The page reloads itself until the job has ended.
    page.until("document.body.innerText.includes('Completed')", seconds=20)
    assert "120 of 120" in page.text("#content")
    assert page.complaints == []


def _tab_to(page: Page, is_there: str) -> None:
    """Press Tab until the element has the focus. Fail if it never gets the focus."""
    for _ in range(_MOST_STOPS):
        page.press("Tab")
        if page.evaluate(is_there):
            return
    raise AssertionError(f"the focus never reaches: {is_there}")
