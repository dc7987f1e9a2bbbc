"""The page of an event stream: its state at the top, charts of the last 24 hours, and the button for its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Tenant
from provisioning.models import Delivery
from tests.factories.admin import browser_of, new_staff, take_from_administrators


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def deliver(stream: EventStream, count: int, state: str, *, first: int = 0) -> None:
    now = datetime.now(UTC)
    Delivery.objects.bulk_create(
        Delivery(stream_id=stream.pk, tenant_id=stream.tenant_id, key=f"user:{number}", position=number, event=number + 10**9,
                 event_id=f"evt_{number}", event_type="user.created", state=state, created_at=now, settled_at=now + timedelta(seconds=3))
        for number in range(first, first + count)
    )  # fmt: skip


def page(browser: Client, stream: EventStream, **query: str) -> Any:
    return browser.get(reverse("admin:events_eventstream_change", args=(quote(stream.pk),)), query)


def test_the_charts_show_success_rates_and_times_with_their_units(browser: Client, stream: EventStream) -> None:
    deliver(stream, 3, "delivered")
    deliver(stream, 1, "dead", first=10)

    answer = page(browser, stream)

    success, time = answer.context["charts"]
    assert (success.total, success.unit, success.top) == ("75.0 %", "% accepted", "100")
    assert (time.total, time.unit, time.top) == ("up to 3.0 s", "seconds", "4")
    shown = answer.content.decode()
    assert '<p class="chart-unit" aria-hidden="true">% accepted</p>' in shown
    assert shown.index("Success rate of deliveries") < shown.index('id="id_name"')


def test_the_page_of_a_held_stream_begins_with_the_reason_and_a_button_to_resume(browser: Client, stream: EventStream) -> None:
    held = {"held_since": datetime.now(UTC), "held_reason": "Token refused."}
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(**held)

    answer = page(browser, stream)

    assert "Held: Token refused." in answer.content.decode()
    assert answer.context["primary_action"] == "resume"


def test_the_page_of_a_disabled_stream_has_a_button_to_enable_it(browser: Client, stream: EventStream) -> None:
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(status="disabled")

    assert page(browser, stream).context["primary_action"] == "enable"


def test_the_state_contains_the_number_of_waiting_deliveries(browser: Client, stream: EventStream) -> None:
    deliver(stream, 7, "todo")

    rows = {row[0].text: row[1].text for row in page(browser, stream).context["panels"][0].rows}

    assert rows["Events in the queue, not delivered yet"] == "7"


def test_the_tab_of_deliveries_shows_the_newest_deliveries_with_a_constant_number_of_queries(browser: Client, stream: EventStream) -> None:
    deliver(stream, 1, "delivered")
    page(browser, stream, tab="deliveries")
    with CaptureQueriesContext(database) as few:
        page(browser, stream, tab="deliveries")
    deliver(stream, 20, "delivered", first=5)
    with CaptureQueriesContext(database) as many:
        [panel] = page(browser, stream, tab="deliveries").context["panels"]

    assert len(panel.rows) == 21
    assert panel.rows[0][1].copied == "user:24"
    assert len(many) == len(few)


def test_staff_without_the_permission_for_deliveries_see_no_charts_and_no_rows(
    browser: Client, stream: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(stream, 1, "delivered")
    take_from_administrators(monkeypatch, "provisioning.view_delivery")

    assert page(browser, stream).context["charts"] == []
    assert page(browser, stream, tab="deliveries").context["panels"][0].rows == ()
