"""The pages of the event stream in a real browser: the log, the open streams, a test event, and the live page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from events.hints import publish_hint
from events.log.numbering import number_tenant
from events.models import LogEntry
from events.stream.operating.connections import disconnect, open_connections
from identity.models import Connection, Tenant, User
from identity.services.organizations import delete_organization
from identity.services.users import update_user
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import PASSWORD, new_staff, new_tenant
from tests.factories.models.identity import UserFactory
from tests.factories.organizations import make_organization
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

LIVE, LOG, CONNECTIONS = "/admin/events/live/", "/admin/events/logentry/", "/admin/events/connections/"
MARKUP = "</script><script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"
SHOWN = "[...document.querySelectorAll('#live-list li:not([hidden])')]"
# How many pixels of the list are below its visible part.
BELOW = "(({scrollTop, scrollHeight, clientHeight}) => scrollHeight - scrollTop - clientHeight)(document.getElementById('live-scroll'))"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn", EVENTS_HEARTBEAT_SECONDS="0.5", EVENTS_RETRY_MS="200") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def user(tenant: Tenant, database_connection: Connection) -> User:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", name=MARKUP)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "Ada"})
    number_tenant(tenant.pk)
    return user


@pytest.fixture
def visit(web: WebProcess, browser: Chromium, tenant: Tenant) -> Callable[[str], Page]:
    """Sign in to the admin with the form. Return a function that opens a URL of the admin in the same tab."""
    page = browser.page()
    page.show_as()
    base = f"http://127.0.0.1:{web.address[1]}"
    page.open(f"{base}/admin/login/?next=/admin/")
    page.fill("input[name=username]", new_staff(tenant).email)
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button")
    page.until("location.pathname === '/admin/' && document.readyState === 'complete'")

    def opened(path: str) -> Page:
        page.open(base + path)
        return page

    return opened


def change(user: User, name: str) -> None:
    """Change the name of the user, which records an event with this name."""
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"given_name": name})
    publish(user.tenant_id)


def publish(tenant_id: str) -> None:
    """Number the events of the tenant and send the hint to the web process."""
    batch = number_tenant(tenant_id)
    assert batch is not None
    publish_hint(tenant_id, batch.head_position)


def connected(page: Page) -> Page:
    page.until("document.getElementById('live-state').textContent === 'Connected.'")
    return page


def names_in(page: Page) -> list[str]:
    """Return the name of the user in each displayed event, in the order of the list."""
    page.evaluate(f"{SHOWN}.forEach((entry) => {{ entry.querySelector('details').open = true }})")
    page.until(f"{SHOWN}.every((entry) => entry.querySelector('pre'))")
    shown = page.evaluate(f"{SHOWN}.map((entry) => entry.querySelector('pre').textContent)")
    return [json.loads(text)["data"]["object"]["given_name"] for text in shown]


def shows(page: Page, count: int) -> None:
    page.until(f"{SHOWN}.length === {count}")


def test_an_event_is_found_by_email_address_and_shows_what_changed(visit: Callable[[str], Page], user: User) -> None:
    page = visit(LOG)
    page.fill("#id_entity", "ada@example.test")
    page.click(".log-search-buttons button")
    page.until("document.querySelectorAll('#result_list tbody tr').length === 2")
    page.click("#result_list tbody th a")
    page.until("document.querySelector('pre.json') !== null")

    assert '"Ada"' in page.text("section.panel")
    page.evaluate("document.querySelectorAll('#content details').forEach((folded) => { folded.open = true })")
    assert "manage.py events tail" in page.text()
    assert page.evaluate("document.title") != "taken over"
    assert page.complaints == []


def test_a_new_event_appears_and_its_markup_is_escaped(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    change(user, "first")
    shows(page, 1)
    page.evaluate(f"{SHOWN}[0].querySelector('details').open = true")
    page.until("document.querySelector('#live-list pre') !== null")

    assert MARKUP.replace('"', '\\"') in page.text("#live-list pre")
    assert page.evaluate("document.querySelectorAll('#live-list :is(img, script)').length") == 0
    assert page.evaluate("document.title") != "taken over"
    assert page.complaints == []


def test_no_event_of_another_tenant_appears(visit: Callable[[str], Page], user: User, web: WebProcess) -> None:
    page = connected(visit(LIVE))
    make_target(new_tenant(), web.address).write("user.deleted")
    change(user, "mine")
    shows(page, 1)
    assert names_in(page) == ["mine"]


def test_a_paused_page_keeps_new_events_for_later(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    page.click("#live-pause")
    change(user, "one")
    change(user, "two")
    page.until("document.getElementById('live-count').textContent.includes('2 waiting')")
    shows(page, 0)
    page.click("#live-pause")
    shows(page, 2)
    assert names_in(page) == ["one", "two"]

    page.click("#live-clear")
    shows(page, 0)
    assert "No events yet" in page.text("#live-scroll")


def test_the_filter_for_types_applies_to_displayed_events_and_to_new_events(
    visit: Callable[[str], Page], user: User, database_connection: Connection
) -> None:
    page = connected(visit(LIVE))
    change(user, "seen")
    shows(page, 1)
    page.click("#live-type")
    page.click("#live-types input[value='user.created']")
    shows(page, 0)
    assert "No event matches the filter." in page.text("#live-scroll")
    page.click("#live-clear")
    assert "No events of these types yet." in page.text("#live-scroll")
    connected(page)
    change(user, "left out")
    UserFactory.create(tenant_id=user.tenant_id, connection=database_connection, email="b@example.test", given_name="wanted")
    change(user, "left out too")
    shows(page, 1)
    assert names_in(page) == ["wanted"]


def test_the_live_page_can_be_filtered_by_several_types_and_an_entity(
    visit: Callable[[str], Page], user: User, database_connection: Connection
) -> None:
    other = UserFactory.create(tenant_id=user.tenant_id, connection=database_connection, email="b@example.test", given_name="B")
    number_tenant(user.tenant_id)
    page = connected(visit(f"{LIVE}?event_type=user.created&event_type=user.updated"))
    assert page.text("#live-type") == "2 types"
    change(user, "of ada")
    change(other, "of b")
    shows(page, 2)

    page.fill("#live-entity", "B@example.test")
    shows(page, 1)
    change(user, "of ada again")
    change(other, "of b again")
    shows(page, 2)
    assert names_in(page) == ["of b", "of b again"]

    page.fill("#live-entity", "")
    shows(page, 3)
    page.evaluate(f"{SHOWN}[0].querySelector('details').open = true")
    page.until(f"{SHOWN}[0].querySelector('.live-links button') !== null")
    page.evaluate(f"{SHOWN}[0].querySelector('.live-links button').click()")
    shows(page, 1)
    assert page.evaluate("document.getElementById('live-entity').value") == f"user:{user.user_id}"
    assert page.complaints == []


def test_the_page_opens_a_lost_connection_again_and_misses_no_event(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    change(user, "before")
    shows(page, 1)
    [connection] = open_connections(user.tenant_id).connections
    assert disconnect(user.tenant_id, connection.connection_id)
    change(user, "between")
    change(user, "after")
    shows(page, 3)

    assert names_in(page) == ["before", "between", "after"]
    eventually(lambda: len(open_connections(user.tenant_id).connections) == 1)
    assert open_connections(user.tenant_id).connections[0].connection_id != connection.connection_id


def test_scrolling_up_stops_automatic_scrolling_until_the_user_requests_the_newest_events(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    for number in range(20):
        change(user, f"early {number}")
    shows(page, 20)
    page.until(f"{BELOW} < 24")
    page.evaluate("document.getElementById('live-scroll').scrollTop = 0")
    page.until("!document.getElementById('live-newest').hidden")
    change(user, "late")
    page.until("document.getElementById('live-newest').textContent.includes('1 more')")
    assert page.evaluate("document.getElementById('live-scroll').scrollTop") == 0

    page.click("#live-newest")
    page.until("document.getElementById('live-newest').hidden")
    assert page.evaluate("document.getElementById('live-scroll').scrollTop") > 0


def test_the_keyboard_suffices_and_a_screen_reader_announces_only_requested_events(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    change(user, "one")
    shows(page, 1)
    assert page.evaluate("document.getElementById('live-list').getAttribute('aria-live')") == "off"
    page.evaluate("document.getElementById('live-type').focus()")
    seen = []
    for _ in range(6):
        page.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.localName"))
    assert seen == ["live-entity", "live-pause", "live-clear", "live-aloud", "live-scroll", "summary"]

    page.press("Enter")
    page.until("document.querySelector('#live-list details').open")
    page.evaluate("document.getElementById('live-aloud').focus()")
    page.press(" ")
    page.until("document.getElementById('live-list').getAttribute('aria-live') === 'polite'")
    page.evaluate("document.getElementById('live-pause').focus()")
    page.press(" ")
    page.until("document.getElementById('live-pause').getAttribute('aria-pressed') === 'true'")


def test_a_page_reports_that_its_session_has_ended_and_stops_reconnecting(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    page.send("Network.clearBrowserCookies")
    [connection] = open_connections(user.tenant_id).connections
    disconnect(user.tenant_id, connection.connection_id)

    page.until("document.getElementById('live-state').textContent.includes('Log in')")


def test_pages_that_need_a_script_have_an_alternative_without_it(visit: Callable[[str], Page], user: User) -> None:
    page = visit(LOG)
    page.without_script()
    try:
        visit(LIVE)
        assert "off in this browser" in page.text()
        assert page.evaluate("document.getElementById('live').hidden") is True
        assert page.evaluate(f"document.querySelector('noscript a').getAttribute('href') === '{LOG}'")
        visit(CONNECTIONS)
        assert page.evaluate("document.querySelector('meta[http-equiv=refresh]') !== null")
    finally:
        page.without_script(is_off=False)


def test_an_open_stream_can_be_watched_tested_and_closed(visit: Callable[[str], Page], tenant: Tenant, web: WebProcess) -> None:
    target = make_target(tenant, web.address)
    page = visit(CONNECTIONS)
    assert "No open streams" in page.text()
    with target.subscribe() as stream:
        stream.opened()
        # The page updates itself without a reload, so that it keeps what the user has typed. A reload would delete this variable.
        page.evaluate("window.stays = true")
        page.until("document.querySelector('table.connections') !== null", seconds=15)
        assert page.evaluate("window.stays") is True

        page.click(".canary button")
        page.until("document.querySelector('.messagelist') !== null")
        assert "reached 1 of 1 open streams" in page.text(".messagelist")
        assert stream.events(1)[0].message["event"]["data"]["canary"]

        page.click("table.connections a[href$='/disconnect/']")
        page.until("document.querySelector('input.dangerous') !== null")
        page.click("input.dangerous")
        page.until("document.querySelector('.messagelist') !== null")
        assert "is closed" in page.text(".messagelist")
        *_, last = stream.blocks()
        assert last.event == "error"
    assert page.complaints == []


def test_lists_with_a_deleted_entity_fit_every_screen(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-peers")
    company = make_organization(tenant, "engines")
    delete_organization(tenant_id=tenant.pk, organization_id=company.pk)
    number_tenant(tenant.pk)
    for path in ("/admin/", LOG, "/admin/events/event/"):
        page = visit(path)
        assert company.pk in page.text()
        assert barriers_of(page) == [], path


@pytest.mark.parametrize("path", [LIVE, LOG, f"{LOG}?first=x&entity=nobody", "entry", CONNECTIONS, "disconnect"])
def test_every_page_fits_every_screen_and_is_accessible(visit: Callable[[str], Page], user: User, web: WebProcess, path: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-peers")
    target = make_target(Tenant.objects.get(pk=user.tenant_id), web.address)
    with target.subscribe({"event_type": ["user.created"]}) as stream:
        stream.opened()
        eventually(lambda: len(open_connections(user.tenant_id).connections) == 1)
        [connection] = open_connections(user.tenant_id).connections
        entry = LogEntry.objects.get(tenant_id=user.tenant_id, position=3)
        places = {"entry": f"{LOG}{entry.pk}/change/", "disconnect": f"{CONNECTIONS}{connection.connection_id}/disconnect/"}
        assert barriers_of(visit(places.get(path, path))) == []
