"""The log browser: finds by index, shows what is stored, changes nothing."""

from __future__ import annotations

import pytest
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from events.models import Event, LogEntry
from events.numbering import number_tenant
from identity.models import Connection, Tenant, User
from identity.services.users import create_user, update_user
from tests.factories.admin import browser_of, new_staff

LIST = "admin:events_logentry_changelist"


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def user(tenant: Tenant, database_connection: Connection) -> User:
    """A user whose log is: connection.created, user.created, user.updated."""
    user = create_user(tenant_id=tenant.pk, connection=database_connection, email="a@example.test", name="<script>alert(1)</script>")
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "A"})
    number_tenant(tenant.pk)
    return user


def positions(browser: Client, **query: str) -> list[int]:
    return [row.position for row in browser.get(reverse(LIST), query).context["cl"].result_list]


def test_the_log_is_listed_newest_first(browser: Client, user: User) -> None:
    assert positions(browser) == [3, 2, 1]


def test_entries_are_found_by_entity_event_id_position_and_type(browser: Client, user: User) -> None:
    second = LogEntry.objects.select_related("event").get(tenant_id=user.tenant_id, position=2)

    assert positions(browser, q=f"user:{user.user_id}") == [3, 2]
    assert positions(browser, q=second.event.event_id) == [2]
    assert positions(browser, q="2") == [2, 1]
    assert positions(browser, type="user.created") == [2]
    assert positions(browser, type="connection.created", q="1") == [1]
    assert positions(browser, type="no.such.type") == [3, 2, 1]


def test_the_message_is_shown_laid_out_and_escaped(browser: Client, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=user.tenant_id, position=2)
    page = browser.get(reverse("admin:events_logentry_change", args=(entry.pk,))).content.decode()

    assert '<pre class="json"' in page
    assert "&quot;type&quot;: &quot;user.created&quot;" in page
    assert "<script>alert(1)</script>" not in page


def test_machine_written_rows_cannot_be_changed(browser: Client, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=user.tenant_id, position=2)
    for model, key in (("logentry", entry.pk), ("event", entry.pk), ("head", user.tenant_id)):
        assert browser.post(reverse(f"admin:events_{model}_change", args=(key,)), {"position": "9"}).status_code == 403
        assert browser.post(reverse(f"admin:events_{model}_delete", args=(key,)), {"post": "yes"}).status_code == 403
        assert browser.get(reverse(f"admin:events_{model}_add")).status_code == 403


def test_the_list_reads_no_message_and_counts_to_a_limit(browser: Client, user: User) -> None:
    with CaptureQueriesContext(
        database,
    ) as captured:
        browser.get(reverse(LIST))

    asked = [query["sql"] for query in captured.captured_queries if "events_logentry" in query["sql"]]
    assert asked
    assert not [sql for sql in asked if '"body"' in sql]
    assert not [sql for sql in asked if "COUNT(" in sql and "LIMIT" not in sql]


@pytest.mark.parametrize("query", [{}, {"type": "group.created"}, {"q": "user:nobody"}, {"q": "900"}, {"p": "3"}])
def test_the_cost_of_a_page_does_not_depend_on_the_length_of_the_log(tenant: Tenant, browser: Client, query: dict[str, str]) -> None:
    fill_log(tenant, 30_000)

    with CaptureQueriesContext(database) as captured:
        assert browser.get(reverse(LIST), query).status_code == 200

    for asked in captured.captured_queries:
        if "events_logentry" in asked["sql"]:
            assert rows_read(asked["sql"]) <= 12_000, asked["sql"]


def fill_log(tenant: Tenant, count: int) -> None:
    """Put entries into the log as the numberer would, without the changes that made them."""
    with database.cursor() as cursor:
        cursor.execute(
            "WITH made AS (INSERT INTO events_event (event_id, tenant_id, type, root, time, body) "
            "SELECT 'evt_' || substr(md5(%(tenant)s || i) || md5(i::text), 1, 22), %(tenant)s, 'user.updated', "
            "'user:database|' || i %% 100, now(), '{}' FROM generate_series(1, %(count)s) i RETURNING id) "
            "INSERT INTO events_logentry (event_id, tenant_id, position, recorded_at) "
            "SELECT id, %(tenant)s, row_number() OVER (ORDER BY id), now() FROM made",
            {"tenant": tenant.pk, "count": count},
        )
        cursor.execute("UPDATE events_head SET position = %s WHERE tenant_id = %s", [count, tenant.pk])
        cursor.execute("ANALYZE events_event, events_logentry")


def rows_read(sql: str) -> int:
    """Return the largest number of rows that a step of the query's plan has read."""
    with database.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        plan = cursor.fetchone()[0][0]["Plan"]
    return max(_counts(plan))


def _counts(plan: dict[str, object]) -> list[int]:
    own = int((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])  # type: ignore[operator]
    return [own, *(count for child in plan.get("Plans", []) for count in _counts(child))]  # type: ignore[attr-defined]


def test_an_event_has_no_page_for_an_unknown_key(browser: Client, user: User) -> None:
    for key in ("99999999999999999999999999", "abc", "0"):
        assert browser.get(reverse("admin:events_event_change", args=(key,))).status_code == 404
    assert Event.objects.filter(tenant_id=user.tenant_id).count() == 3
