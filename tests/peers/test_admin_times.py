"""The admin shows times in the time zone of the reader, in tables, cards, charts and live events. The tooltip contains the time in UTC."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from events.log.numbering import number_tenant
from identity.models import Connection, Tenant
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user
from tests.peers.chromium import PROGRAM, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

# The offset of this time zone is the same all year, and is not a whole number of hours.
ZONE, OFFSET = "Australia/Darwin", timedelta(hours=9, minutes=30)
_FULL, _CLOCK = "%Y-%m-%d %H:%M:%S", "%H:%M:%S.%f"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture
def page(web: WebProcess, tenant: Tenant, database_connection: Connection) -> Iterator[Page]:
    """Return a tab of an administrator in Australia. The tenant of the administrator has events."""
    make_user(connection=database_connection)
    number_tenant(tenant.pk)
    with chromium() as browser:
        session, tab = browser_of(new_staff(tenant)), browser.page()
        name = settings.SESSION_COOKIE_NAME
        tab.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base_of(web), httpOnly=True)
        tab.send("Emulation.setTimezoneOverride", timezoneId=ZONE)
        yield tab


def base_of(web: WebProcess) -> str:
    return f"http://127.0.0.1:{web.address[1]}"


def times_of(page: Page, selector: str) -> list[tuple[str, str]]:
    """Return the text and the tooltip of each time in the elements that match `selector`."""
    found = page.evaluate(f"[...document.querySelectorAll({json.dumps(f'{selector} time')})].map((time) => [time.textContent, time.title])")
    return [(text, title) for text, title in found]


def is_shifted(shown: tuple[str, str], form: str) -> bool:
    """Tell whether a time with the format `form` is shown in the zone of the reader, and its tooltip contains the same time in UTC."""
    text, title = shown
    utc = datetime.strptime(title, f"%Y-%m-%d {form.removeprefix('%Y-%m-%d ')} UTC").replace(tzinfo=UTC)
    return datetime.strptime(text, form).replace(tzinfo=UTC).time() == (utc + OFFSET).time()


def test_lists_show_the_time_of_the_reader_with_utc_in_the_tooltip(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:events_logentry_changelist"))
    assert f"All times are in {ZONE}." in page.text(".footnote")
    shown = times_of(page, "#result_list")
    assert shown
    assert all(is_shifted(each, _FULL) for each in shown)

    page.click(".footnote button")
    page.until("document.querySelector('.footnote')?.innerText.includes('All times are in UTC.') && document.readyState === 'complete'")
    assert times_of(page, "#result_list") == []
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", page.text("#result_list"))


def test_no_label_says_utc_beside_a_time_in_the_zone_of_the_reader(page: Page, web: WebProcess) -> None:
    page.show_as(width=360)
    page.open(base_of(web) + reverse("admin:index"))
    assert times_of(page, ".cards")
    assert page.evaluate("document.querySelectorAll('[data-label*=UTC]').length") == 0
    assert not [text for text, _ in times_of(page, "#content") if "UTC" in text]


def test_charts_have_axes_and_tables_in_the_time_of_the_reader(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:index"))
    ends, rows = times_of(page, ".chart-ends"), times_of(page, ".chart-table tbody")
    assert len(ends) >= 2
    assert len(rows) == 12 * len(ends)
    assert all(is_shifted(each, "%H:%M") for each in ends)
    assert all(is_shifted(each, "%Y-%m-%d %H:%M") for each in rows)
    units = page.evaluate("[...document.querySelectorAll('.chart-unit')].map((unit) => unit.textContent.trim())")
    assert units
    assert all(units)
    # Each hour in the table is a link to the rows of the hour. The URL of the link contains the hour in UTC.
    assert page.evaluate("document.querySelector('.chart-table a').href.includes('since=')")


def test_all_times_are_utc_without_script_and_the_page_says_so(page: Page, web: WebProcess) -> None:
    page.without_script()
    page.open(base_of(web) + reverse("admin:index"))
    page.without_script(is_off=False)
    assert page.text(".footnote") == "All times are UTC."
    assert "UTC" in page.text(".chart-ends")
    assert "(UTC)" in page.evaluate("document.querySelector('.chart-table thead').textContent")


def test_live_events_show_the_time_of_the_reader(page: Page, web: WebProcess, database_connection: Connection) -> None:
    page.open(base_of(web) + reverse("admin:events_live"))
    page.until("document.querySelector('#live-state').textContent === 'Connected.'")
    make_user(connection=database_connection)
    number_tenant(database_connection.tenant_id)
    page.until("document.querySelectorAll('#live-list > li').length === 1")
    page.until("document.querySelector('#live-list time').dataset.shown")
    (shown,) = times_of(page, "#live-list")
    assert is_shifted(shown, _CLOCK)
    assert page.complaints == []


def test_the_labels_of_fields_for_times_say_that_the_times_are_in_utc(page: Page, web: WebProcess) -> None:
    page.open(base_of(web) + reverse("admin:identity_auditentry_changelist"))
    labels = page.evaluate(
        "[...document.querySelectorAll('input[type=datetime-local]')].map((input) => input.labels[0].textContent.trim())"
    )
    assert labels == ["From time (UTC)", "To time (UTC)"]
