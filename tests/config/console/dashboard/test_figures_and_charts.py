"""The start page: its figures and charts, the targets of its links, and the number of its queries."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from authapi.models import SignIn
from config.console.dashboard import readings
from config.console.dashboard.figures import Figure
from events.log.numbering import number_tenant
from events.models import EventStream
from foundation.admin.charts import HEIGHT, WIDTH, lying, upright
from identity.models import Connection, Tenant
from identity.staff_roles import PROVISIONING_OPERATOR
from provisioning.engine.stream_flow import hour_starts
from provisioning.engine.streams import create_stream
from provisioning.models import Delivery
from tests.factories.actions import make_deployed_action
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.identity import ConnectionFactory
from tests.factories.models.provisioning import DeadLetterFactory, DeliveryFactory, LaneFactory

# The maximum number of queries of the start page of one tenant: 3 for session, account and tenant, 13 for figures, charts and health, and
# the rest for the first steps and the newest events.
MOST_QUERIES = 20


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def stream(tenant: Tenant) -> EventStream:
    destination = {"action_id": str(make_deployed_action(tenant).pk)}
    return create_stream(
        tenant_id=tenant.pk, name="Directory", subscriptions=["user.created"], destination_type="action", destination=destination
    )


def figures(browser: Client) -> dict[str, Figure]:
    return {figure.label: figure for figure in browser.get("/admin/").context["figures"]}


def deliver(stream: EventStream, count: int, state: str) -> None:
    Delivery.objects.bulk_create(
        Delivery(stream_id=stream.pk, tenant_id=stream.tenant_id, key=f"user:{state}{number}", position=number, event=number + 10**9,
                 event_id=f"evt_{number}", event_type="user.created", state=state)
        for number in range(count)
    )  # fmt: skip


def bury(stream: EventStream, count: int, fingerprint: str) -> None:
    """Create dead letters with one fingerprint.

    Their log positions depend on the length of the fingerprint, and a stream has each position only once. So each call for the same stream
    needs a fingerprint of another length.
    """
    for number in range(count):
        event = {"event_id": f"evt_{number}", "event_type": "user.created", "key": f"user:{fingerprint}{number}"}
        place = {"stream_id": stream.pk, "tenant_id": stream.tenant_id}
        position = number + len(fingerprint) * 10**6
        delivery = DeliveryFactory.create(**event, **place, position=position, event=position, state="dead")
        failure = {"reason": f"The server said no to {fingerprint}", "error_class": "data", "error_status": 400}
        DeadLetterFactory.create(delivery=delivery, **failure, fingerprint=fingerprint, attempts=7)


def test_the_figures_count_the_rows_of_the_tenant(
    browser: Client, tenant: Tenant, database_connection: Connection, stream: EventStream
) -> None:
    other = new_tenant()
    make_user(connection=ConnectionFactory.create(tenant_id=other.pk, name="people", strategy="database"))
    for _ in range(3):
        make_user(connection=database_connection)
    number_tenant(tenant.pk)
    deliver(stream, 2, "delivered")
    bury(stream, 1, "once")
    LaneFactory.create(stream_id=stream.pk, tenant_id=tenant.pk, key="user:1", not_before=datetime.now(UTC) - timedelta(minutes=5))

    shown = {label: figure.value for label, figure in figures(browser).items()}

    assert shown["Users"] == "3"
    # Creating the connection has also recorded an event.
    assert shown["Events"] == "4"
    # The stream starts after the event of the connection.
    assert shown["Largest lag"] == "3"
    assert shown["Deliveries"] == "3"
    assert shown["Open dead letters"] == "1"
    assert shown["Open streams"] == shown["Failed logins"] == "0"
    assert shown["Oldest due delivery"].startswith("5 min")


def test_the_figures_of_the_platform_count_the_rows_of_every_tenant(tenant: Tenant, database_connection: Connection) -> None:
    operator = browser_of(new_staff(None))
    before = int(figures(operator)["Events"].value.replace(",", ""))
    for _ in range(3):
        make_user(connection=database_connection)

    shown = figures(operator)

    assert int(shown["Events"].value.replace(",", "")) >= before + 3
    assert {"Tenants", "Users", "Events without a position", "Staff accounts", "Largest lag", "Deliveries"} <= set(shown)


@pytest.mark.parametrize("is_platform", [False, True], ids=["a tenant", "the platform"])
def test_every_figure_links_to_an_existing_page(tenant: Tenant, stream: EventStream, *, is_platform: bool) -> None:
    browser = browser_of(new_staff(None if is_platform else tenant))
    deliver(stream, 2, "delivered")
    bury(stream, 2, "twice")
    page = browser.get("/admin/")
    bars = [bar.url for chart in page.context["charts"] for bar in chart.bars[-2:]]
    places = [*(figure.url for figure in page.context["figures"]), *(chart.url for chart in page.context["charts"]), *bars]

    assert len(places) > 20
    for place in places:
        answer = browser.get(place)
        chooser = reverse("admin:choose_tenant")
        assert answer.status_code == 200 or answer.headers["location"].startswith(chooser), place


def test_kinds_of_failure_with_the_most_open_dead_letters_come_first(browser: Client, stream: EventStream) -> None:
    bury(stream, 1, "rare")
    bury(stream, 3, "often")
    shown = [
        next(chart for chart in client.get("/admin/").context["charts"] if chart.key == "dead-letters")
        for client in (browser, browser_of(new_staff(None)))
    ]
    ours = [(bar.count, bar.label) for bar in shown[0].bars]
    assert ours == [(3, "400: The server said no to often"), (1, "400: The server said no to rare")]
    # The figures of the platform also count the rows of other tests.
    counts = [bar.count for bar in shown[1].bars]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 3


def test_each_bar_counts_the_events_of_one_hour(tenant: Tenant, database_connection: Connection) -> None:
    make_user(connection=database_connection)
    number_tenant(tenant.pk)
    now = datetime.now(UTC)
    hours = readings.events_by_hour(tenant.pk, hour_starts(now))
    ahead = readings.events_by_hour(tenant.pk, hour_starts(now + timedelta(hours=3)))

    assert hours.counts == [0] * 23 + [2]
    assert ahead.counts == [0] * 20 + [2, 0, 0, 0]
    assert sum(readings.events_by_hour(None, hour_starts(now)).counts) >= 2
    assert readings.events_by_hour("nobody", hour_starts(now)).total == 0


def test_each_chart_has_a_title_and_a_table_with_its_values(browser: Client, tenant: Tenant, database_connection: Connection) -> None:
    make_user(connection=database_connection)
    number_tenant(tenant.pk)
    page = browser.get("/admin/").content.decode()

    drawing = re.search(r'<svg role="img".*?</svg>', page, re.DOTALL)
    assert drawing is not None
    assert '<title id="events-title">Events per hour</title>' in drawing[0]
    assert "2 events in the last 24 hours. The busiest hour" in drawing[0]
    assert "has 2." in drawing[0]
    assert page.count('<th scope="row">') >= 24
    assert "style=" not in page


def test_bars_fill_the_chart_and_stay_inside_it() -> None:
    bars = upright([0, 1, 1000], str, str)
    assert [bar.height for bar in bars] == [0, 1.5, HEIGHT - 1]
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH and bar.y + bar.height == HEIGHT for bar in bars)
    assert [bar.width for bar in lying([("a", 0, "", ""), ("b", 5, "", "")])] == [0, WIDTH]
    assert all(bar.height == 0 for bar in upright([0, 0], str, str))


def test_an_account_without_permission_for_a_list_does_not_see_its_figure(tenant: Tenant) -> None:
    page = browser_of(new_staff(tenant, PROVISIONING_OPERATOR)).get("/admin/")
    labels = {figure.label for figure in page.context["figures"]}

    assert "Failed logins" not in labels
    assert "Deliveries" in labels
    assert "sign-ins" not in {chart.key for chart in page.context["charts"]}


def test_the_number_of_queries_does_not_depend_on_the_rows_of_a_tenant(browser: Client, tenant: Tenant, stream: EventStream) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="people", strategy="database")
    # This user is in the latest events, so both counts contain the query that reads the names of users.
    make_user(connection=connection)
    number_tenant(tenant.pk)
    browser.get("/admin/")
    with CaptureQueriesContext(database) as few:
        browser.get("/admin/")
    for _ in range(5):
        make_user(connection=connection)
    number_tenant(tenant.pk)
    deliver(stream, 300, "delivered")
    bury(stream, 20, "many")
    with CaptureQueriesContext(database) as many:
        browser.get("/admin/")

    assert len(many) == len(few) <= MOST_QUERIES


@pytest.fixture
def busy(tenant: Tenant) -> Tenant:
    """Return a tenant, and give another tenant many rows, so that the planner could choose a plan that reads the rows of both tenants."""
    other = new_tenant()
    deliver(EventStream(pk="est_other", tenant_id=other.pk), 5000, "delivered")
    SignIn.all_tenants.bulk_create(SignIn(tenant_id=other.pk, type="s", is_success=number % 100 > 0) for number in range(5000))
    with database.cursor() as cursor:
        cursor.execute("ANALYZE provisioning_delivery, authapi_signin")
    return tenant


def test_the_figures_of_a_tenant_read_no_rows_of_other_tenants(busy: Tenant) -> None:
    starts = hour_starts(datetime.now(UTC))
    with CaptureQueriesContext(database) as asked:
        readings.deliveries(busy.pk, starts[0])
        readings.failed_sign_ins(busy.pk, starts)
        readings.failed_sign_ins(None, starts)
    with database.cursor() as cursor:
        for query in asked.captured_queries:
            cursor.execute(f"EXPLAIN {query['sql']}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan" not in plan, plan
            assert "Index" in plan
