"""The log browser. It searches through indexes, shows stored events, and cannot change them."""

from __future__ import annotations

import json
import re
import secrets
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.utils import quote
from django.db import connection as database
from django.db import transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from events.log.browsing import PAGE_ROWS
from events.log.cursor import Cursor, CursorSealer
from events.log.numbering import number_tenant
from events.models import Event, Head, LogEntry
from foundation.change_context import ChangeContext, ChangingClient, change_context
from identity.models import Connection, Tenant, User
from identity.services.users import delete_user, update_user
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.identity import UserFactory

LIST = "admin:events_logentry_changelist"
MARKUP = "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def user(tenant: Tenant, database_connection: Connection) -> User:
    """A user whose log has three events: connection.created, user.created, user.updated."""
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="a@example.test", name=MARKUP)
    with change_context(ChangeContext(client=ChangingClient("abc", "crm", {}))):
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "A", "user_metadata": {"shoe": [1, 2]}})
    number_tenant(tenant.pk)
    return user


def listed(browser: Client, **query: str) -> Any:
    answer = browser.get(reverse(LIST), query)
    assert answer.status_code == 200, query
    return answer


def positions(browser: Client, **query: str) -> list[int]:
    return [row.position for row in listed(browser, **query).context["cl"].result_list]


def page_of(browser: Client, tenant: Tenant | str, position: int) -> str:
    entry = LogEntry.objects.get(tenant_id=getattr(tenant, "pk", tenant), position=position)
    return browser.get(reverse("admin:events_logentry_change", args=(quote(entry.pk),))).content.decode()


def test_the_log_is_listed_newest_first_with_size_and_client(browser: Client, user: User) -> None:
    answer = listed(browser)

    assert [row.position for row in answer.context["cl"].result_list] == [3, 2, 1]
    shown = answer.content.decode()
    assert re.search(r'<td[^>]*class="field-who"[^>]*>crm</td>', shown)
    assert "bytes</td>" in shown.replace("\xa0", " ")


@pytest.mark.parametrize("name", ["user:{id}", "{id}", "a@example.test", "A@EXAMPLE.test"])
def test_an_entity_is_found_by_name_id_and_e_mail_address(browser: Client, user: User, name: str) -> None:
    assert positions(browser, entity=name.format(id=user.user_id)) == [3, 2]


def test_a_connection_is_found_by_its_id_without_prefix(browser: Client, user: User) -> None:
    assert positions(browser, entity=user.connection_id) == [1]
    assert positions(browser, entity="nobody@example.test") == []
    assert positions(browser, entity="user:nobody") == []


def test_entries_are_found_by_event_id_type_position_and_time(browser: Client, user: User) -> None:
    second = LogEntry.objects.select_related("event").get(tenant_id=user.tenant_id, position=2)
    later = (second.recorded_at + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M")
    earlier = (second.recorded_at - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%S")

    assert positions(browser, entity=second.event.event_id) == [2]
    assert positions(browser, type="user.created") == [2]
    assert positions(browser, last="2") == [2, 1]
    assert positions(browser, first="2") == [3, 2]
    assert positions(browser, type="connection.created", first="2") == []
    assert positions(browser, type="user.updated", entity=user.user_id, last="3") == [3]
    assert positions(browser, since=earlier, until=later) == [3, 2, 1]
    assert positions(browser, until=earlier) == []
    assert positions(browser, since=later) == []


@pytest.mark.parametrize(
    "query",
    [{"type": "no.such.type"}, {"first": "x"}, {"first": "0"}, {"last": "9" * 30}, {"since": "soon"}, {"first": "9", "last": "2"}],
)
def test_an_invalid_search_shows_its_error_and_no_entries(browser: Client, user: User, query: dict[str, str]) -> None:
    answer = listed(browser, **query)

    assert answer.context["cl"].result_list == []
    assert "errorlist" in answer.content.decode()


@pytest.mark.parametrize("place", [{"before": "x"}, {"after": "-1"}, {"before": "9" * 40}, {"p": "7"}, {"o": "1"}, {"all": ""}])
def test_an_invalid_page_position_is_ignored(browser: Client, user: User, place: dict[str, str]) -> None:
    assert positions(browser, **place) == [3, 2, 1]


def test_the_pages_of_the_list_miss_no_entry(tenant: Tenant, browser: Client) -> None:
    fill_log(tenant, 2 * PAGE_ROWS + 20)
    seen, answer = [], listed(browser)
    while True:
        seen += [row.position for row in answer.context["cl"].result_list]
        if not answer.context["older_url"]:
            break
        back = answer.context["newer_url"]
        answer = browser.get(reverse(LIST) + answer.context["older_url"])
    assert seen == list(range(2 * PAGE_ROWS + 20, 0, -1))
    assert back

    # The link back leads to the previous page.
    above = browser.get(reverse(LIST) + answer.context["newer_url"])
    assert [row.position for row in above.context["cl"].result_list] == list(range(PAGE_ROWS + 20, 20, -1))


def test_the_next_page_keeps_the_search(tenant: Tenant, browser: Client) -> None:
    fill_log(tenant, 3 * PAGE_ROWS)
    first = listed(browser, type="user.updated", last=str(2 * PAGE_ROWS))
    second = browser.get(reverse(LIST) + first.context["older_url"])

    assert [row.position for row in second.context["cl"].result_list] == list(range(PAGE_ROWS, 0, -1))


def test_a_search_without_an_index_is_partial_and_marked_as_partial(
    tenant: Tenant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.log.browsing.WALK", 100)
    fill_log(tenant, 250, rare="user.created")
    answer, looks = listed(browser, type="user.created", first="1"), 1
    while not answer.context["cl"].result_list:
        assert answer.context["cl"].page.is_partial
        assert "Each page searches" in answer.content.decode()
        answer, looks = browser.get(reverse(LIST) + answer.context["older_url"]), looks + 1

    assert [row.position for row in answer.context["cl"].result_list] == [1]
    assert looks == 3


def test_the_message_is_shown_indented_and_escaped(browser: Client, user: User) -> None:
    for page in (page_of(browser, user.tenant_id, 2), page_of(browser, user.tenant_id, 3), listed(browser).content.decode()):
        assert "<script>alert(1)" not in page
        assert "<img src=x" not in page
    page = page_of(browser, user.tenant_id, 2)
    assert '<pre class="json"' in page
    assert "&quot;type&quot;: &quot;user.created&quot;" in page
    assert escape(json.dumps(MARKUP)[1:-1]) in page


def test_markup_in_the_url_is_escaped(browser: Client, user: User) -> None:
    page = listed(browser, entity=MARKUP).content.decode()

    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page


def test_changes_are_shown_field_by_field(browser: Client, user: User) -> None:
    page = page_of(browser, user.tenant_id, 3)

    rows = re.sub(r' data-label="\w+" ?', "", " ".join(unescape(page[page.index("What changed") :]).split()))
    assert 'given_name </td> <td class="long"> Not set </td> <td class="long"> "A"' in rows
    assert '{"shoe": [1, 2]}' in rows
    assert "family_name" not in rows
    assert "does not contain the earlier values" in page_of(browser, user.tenant_id, 2)


def test_an_entry_shows_the_command_that_resumes_before_the_entry(browser: Client, user: User) -> None:
    page = page_of(browser, user.tenant_id, 3)

    cursor = CursorSealer(settings.CURSOR_KEYS, tenant_id=user.tenant_id).seal(Cursor(Head.objects.get(pk=user.tenant_id).epoch, 2))
    assert f"manage.py events tail http://{user.tenant_id}.example.test --from {cursor}" in page


def test_the_command_of_an_entry_uses_the_port_of_the_page(browser: Client, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=user.tenant_id, position=3)
    place = reverse("admin:events_logentry_change", args=(quote(entry.pk),))

    page = browser.get(place, headers={"host": "localhost:8123"}).content.decode()

    assert f"manage.py events tail http://{user.tenant_id}.example.test:8123 --from" in page


def test_an_entry_links_to_its_entity_while_it_exists(browser: Client, user: User) -> None:
    place = reverse("admin:identity_user_change", args=(quote(user.pk),))
    assert f'href="{place}"' in page_of(browser, user.tenant_id, 3)

    delete_user(tenant_id=user.tenant_id, user_id=user.user_id)
    page = page_of(browser, user.tenant_id, 3)
    assert f'href="{place}"' not in page
    assert f"entity=user%3A{user.user_id.replace('|', '%7C')}" in page


def test_an_entry_links_to_an_entity_whose_id_looks_quoted(browser: Client, tenant: Tenant) -> None:
    # The admin reads an underscore with two hexadecimal digits as a quoted character.
    rest = secrets.token_hex(7)
    with transaction.atomic():
        Connection(id=f"con_3A{rest}", tenant=tenant, name="directory", strategy="database").save()
    number_tenant(tenant.pk)
    place = reverse("admin:identity_connection_change", args=(f"con_5F3A{rest}",))

    assert f'href="{place}"' in page_of(browser, tenant.pk, 1)
    assert browser.get(place).status_code == 200


def test_bytes_that_are_not_an_envelope_are_shown_unchanged(tenant: Tenant, browser: Client) -> None:
    fill_log(tenant, 3)
    for position, body in ((1, b"\xff not json"), (2, b"[1]"), (3, b'{"data": {"context": [], "previous_object": 5}}')):
        Event.objects.filter(log_entry__tenant_id=tenant.pk, log_entry__position=position).update(body=body)

    assert positions(browser) == [3, 2, 1]
    assert "not json" in page_of(browser, tenant, 1)
    assert "What changed" in page_of(browser, tenant, 3)


def test_log_entries_cannot_be_changed(browser: Client, user: User) -> None:
    entry = LogEntry.objects.get(tenant_id=user.tenant_id, position=2)
    for model, key in (("logentry", entry.pk), ("event", entry.pk), ("head", user.tenant_id)):
        assert browser.post(reverse(f"admin:events_{model}_change", args=(key,)), {"position": "9"}).status_code == 403
        assert browser.post(reverse(f"admin:events_{model}_delete", args=(key,)), {"post": "yes"}).status_code == 403
        assert browser.get(reverse(f"admin:events_{model}_add")).status_code == 403


SEARCHES: list[dict[str, str]] = [
    {},
    {"before": "15000"},
    {"after": "15000"},
    {"type": "group.role.deleted"},
    {"type": "group.created"},
    {"type": "user.updated", "before": "99999999"},
    {"entity": "user:database|7"},
    {"entity": "user:nobody"},
    {"entity": "user:database|7", "type": "group.role.deleted"},
    {"entity": "user:database|7", "first": "10", "last": "9000"},
    {"entity": "evt_1111111111111111111111"},
    {"first": "9000", "last": "12000"},
    {"type": "group.role.deleted", "first": "2", "last": "29000"},
    {"since": "2020-01-01T00:00:00"},
    {"until": "2020-01-01T00:00:00"},
]


@pytest.fixture(scope="module")
def long_log(django_db_setup: None, django_db_blocker: Any) -> Any:
    """A tenant with 30,000 events, and another tenant with events.

    One event has a type that other tests rarely record. The statistics of the planner cover the events of all tests, and the type must be
    rare in these statistics.
    """
    from tests.factories.admin import new_tenant

    with django_db_blocker.unblock():
        tenant, other = new_tenant("long"), new_tenant("beside")
        fill_log(tenant, 30_000, rare="group.role.deleted")
        fill_log(other, 10_000)
    return tenant


@pytest.mark.parametrize("query", SEARCHES, ids=str)
@pytest.mark.parametrize("is_bound", [True, False], ids=["one tenant", "all tenants"])
def test_every_page_and_every_search_uses_indexes(committed_db: None, long_log: Tenant, query: dict[str, str], *, is_bound: bool) -> None:
    browser = browser_of(new_staff(long_log if is_bound else None))
    with CaptureQueriesContext(database) as captured:
        listed(browser, **query)

    asked = [found["sql"] for found in captured.captured_queries if "events_" in found["sql"]]
    assert asked
    for sql in asked:
        assert "OFFSET" not in sql
        assert "COUNT(" not in sql
        plan = plan_of(sql)
        assert not [node for node in nodes_of(plan) if node["Node Type"] == "Seq Scan" and "event" in node["Relation Name"]], sql
        # A partial search reads at most 20,000 entries in a log of any length.
        assert max(rows_read(node) for node in nodes_of(plan)) <= 20_001, sql


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({"type": "group.role.deleted"}, "events_event_by_type"),
        ({"entity": "user:database|7"}, "events_event_by_root"),
        ({"before": "900"}, "events_logentry_position_unique"),
        ({"since": "2020-01-01T00:00:00"}, "events_logentry_by_time"),
    ],
    ids=["type", "entity", "position", "time"],
)
def test_each_search_reads_at_most_one_page_of_its_index(committed_db: None, long_log: Tenant, query: dict[str, str], index: str) -> None:
    browser = browser_of(new_staff(long_log))
    with CaptureQueriesContext(database) as captured:
        listed(browser, **query)

    nodes = [node for found in captured.captured_queries if "events_" in found["sql"] for node in nodes_of(plan_of(found["sql"]))]
    assert index in {node.get("Index Name") for node in nodes}
    assert max(rows_read(node) for node in nodes) <= 350


def fill_log(tenant: Tenant, count: int, *, rare: str = "user.updated") -> None:
    """Insert log entries like the numberer, without recorded changes. The first entry has the type `rare`."""
    with database.cursor() as cursor:
        cursor.execute(
            "WITH made AS (INSERT INTO events_event (event_id, tenant_id, type, root, time, body) "
            "SELECT 'evt_' || substr(md5(%(tenant)s || i) || md5(i::text), 1, 22), %(tenant)s, "
            "CASE WHEN i = 1 THEN %(rare)s ELSE 'user.updated' END, "
            "'user:database|' || i %% 100, now(), '{}' FROM generate_series(1, %(count)s) i RETURNING id) "
            "INSERT INTO events_logentry (event_id, tenant_id, position, recorded_at) "
            "SELECT id, %(tenant)s, row_number() OVER (ORDER BY id), now() FROM made",
            {"tenant": tenant.pk, "count": count, "rare": rare},
        )
        cursor.execute("UPDATE events_head SET position = %s WHERE tenant_id = %s", [count, tenant.pk])
        cursor.execute("ANALYZE events_event, events_logentry")


def plan_of(sql: str) -> dict[str, Any]:
    with database.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        found: dict[str, Any] = cursor.fetchone()[0][0]["Plan"]
    return found


def nodes_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes_of(child))]


def rows_read(node: dict[str, Any]) -> int:
    """Return the number of rows that a node of a plan has read."""
    return int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def test_an_unknown_event_has_no_page(browser: Client, user: User) -> None:
    for key in ("99999999999999999999999999", "abc", "0"):
        assert browser.get(reverse("admin:events_event_change", args=(key,))).status_code == 404
    assert Event.objects.filter(tenant_id=user.tenant_id).count() == 3
