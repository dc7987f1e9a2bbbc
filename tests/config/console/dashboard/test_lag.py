"""Lag on the start page.

Events that wait in lanes count as lag, like events that are not dispatched yet. This also applies while the stream is held.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from config.console.dashboard.figures import Figure
from events.models import EventStream
from identity.models import Tenant
from provisioning.engine.streams import create_stream
from provisioning.models import Delivery
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.provisioning import LaneFactory

HELD_HOURS = 2


@pytest.fixture
def stream(tenant: Tenant) -> EventStream:
    destination = {"action_id": str(make_deployed_action(tenant).pk)}
    return create_stream(
        tenant_id=tenant.pk, name="Directory", subscriptions=["user.created"], destination_type="action", destination=destination
    )


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def wait_in_lanes(stream: EventStream, count: int, *, due_at: datetime) -> None:
    """Create waiting deliveries and their lanes, as a dispatch does."""
    Delivery.objects.bulk_create(
        Delivery(stream_id=stream.pk, tenant_id=stream.tenant_id, key=f"user:{number}", position=number, event=number + 10**9,
                 event_id=f"evt_{number}", event_type="user.created")
        for number in range(count)
    )  # fmt: skip
    for number in range(count):
        LaneFactory.create(stream_id=stream.pk, tenant_id=stream.tenant_id, key=f"user:{number}", not_before=due_at)


def hold(stream: EventStream) -> None:
    held = {"held_since": datetime.now(UTC) - timedelta(hours=HELD_HOURS), "held_reason": "The token was refused."}
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(**held)


def figures(browser: Client) -> dict[str, Figure]:
    return {figure.label: figure for figure in browser.get("/admin/").context["figures"]}


def test_waiting_deliveries_of_a_held_stream_count_as_lag(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 23, due_at=datetime.now(UTC) - timedelta(hours=1))
    hold(stream)

    shown = figures(browser)

    assert shown["Largest lag"].value == "23"
    assert shown["Largest lag"].tone == "bad"
    assert shown["Waiting deliveries"].value == "23"
    assert shown["Held streams"].value == "1"


def test_the_oldest_due_delivery_of_a_held_stream_is_shown_with_the_hold(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 1, due_at=datetime.now(UTC) - timedelta(hours=1))
    hold(stream)

    oldest = figures(browser)["Oldest due delivery"]

    assert oldest.value == "1 h 0 min"
    assert oldest.note == "of Directory, which is held"
    assert oldest.tone == "bad"


def test_a_delivery_with_a_later_attempt_counts_as_due_from_the_start_of_the_hold(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 1, due_at=datetime.now(UTC) + timedelta(hours=5))
    hold(stream)

    assert figures(browser)["Oldest due delivery"].value == f"{HELD_HOURS} h 0 min"


def test_a_held_stream_does_not_cause_a_finding_about_missing_workers(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 1, due_at=datetime.now(UTC) - timedelta(hours=1))
    hold(stream)

    text = " ".join(finding.text + finding.advice for finding in browser.get("/admin/").context["findings"])

    assert "Directory is held" in text
    assert "workers" not in text


def test_waiting_deliveries_of_a_disabled_stream_do_not_count_as_lag(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 3, due_at=datetime.now(UTC) - timedelta(hours=1))
    EventStream.objects.of(stream.tenant_id).filter(pk=stream.pk).update(status="disabled")

    shown = figures(browser)

    assert shown["Waiting deliveries"].value == "0"
    assert shown["Largest lag"].value == "none"
    (row,) = browser.get("/admin/").context["panels"][0].rows
    assert [*[cell.text for cell in row[:2]], row[-1].text] == ["Directory", "Disabled", "none"]


def test_without_lag_the_figure_says_that_every_event_is_delivered(browser: Client, stream: EventStream) -> None:
    assert (figures(browser)["Largest lag"].value, figures(browser)["Largest lag"].note) == ("0", "every event is delivered")


def test_charts_show_accepted_deliveries_in_percent_and_delivery_times_in_seconds(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 4, due_at=datetime.now(UTC))
    Delivery.objects.filter(stream_id=stream.pk).update(state="delivered", settled_at=datetime.now(UTC) + timedelta(seconds=3))
    Delivery.objects.filter(stream_id=stream.pk, position=0).update(state="dead")

    shown = {chart.key: chart for chart in browser.get("/admin/").context["charts"]}

    assert (shown["success"].total, shown["success"].unit, shown["success"].top) == ("75.0 %", "% accepted", "100")
    assert (shown["time"].unit, shown["time"].top, len(shown["time"].bars)) == ("seconds", "4", 24)


def test_the_lag_chart_and_the_platform_page_count_waiting_deliveries(browser: Client, stream: EventStream) -> None:
    wait_in_lanes(stream, 23, due_at=datetime.now(UTC) - timedelta(hours=1))
    hold(stream)

    chart = next(chart for chart in browser.get("/admin/").context["charts"] if chart.key == "lag")
    assert [(bar.label, bar.count) for bar in chart.bars] == [("Directory", 23)]
    assert int(figures(browser_of(new_staff(None)))["Waiting deliveries"].value.replace(",", "").rstrip("+")) >= 23


def test_figures_that_may_need_an_action_come_first(browser: Client, stream: EventStream) -> None:
    shown = browser.get("/admin/").context["figures"]
    acted_on = [figure.label for figure in shown if not figure.is_quiet]

    assert acted_on == ["Open dead letters", "Largest lag", "Oldest due delivery", "Waiting deliveries", "Held streams"]
    assert [figure.label for figure in shown][: len(acted_on)] == acted_on
