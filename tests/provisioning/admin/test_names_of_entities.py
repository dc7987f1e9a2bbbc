"""Pages with events and deliveries show the names of the entities, with links to their pages.

These pages are the event log, the start page, lists, and tables.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection as database
from django.db import models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from events.admin.live import NAMES_AT_ONCE
from events.log.numbering import number_tenant
from events.models import Event, LogEntry
from identity.models import Connection, Organization, Tenant, User
from identity.services.groups import add_group_members, delete_group
from identity.services.memberships import add_members
from identity.services.organizations import delete_organization
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.admin_pages import page_of_row
from tests.factories.identity import make_user
from tests.factories.models.events import EventFactory, LogEntryFactory
from tests.factories.models.provisioning import DeadLetterFactory, DeliveryFactory
from tests.factories.organizations import make_group, make_organization, make_role

LOG, START, EVENTS, NAMES = (
    "admin:events_logentry_changelist",
    "admin:index",
    "admin:events_event_changelist",
    "admin:events_live_names",
)
ADA = "Ada Lovelace (ada@example.test)"
DELETED = '<span class="badge badge-quiet">Deleted</span>'


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test", name="Ada Lovelace")


@pytest.fixture
def company(tenant: Tenant, ada: User) -> Organization:
    """Return an organization with the member Ada. Its last event is organization.member.added."""
    company = make_organization(tenant, "engines", display_name="Analytical Engines")
    add_members(tenant_id=tenant.pk, organization_id=company.pk, user_ids=[ada.user_id])
    number_tenant(tenant.pk)
    return company


def entry_of(kind: str, row: models.Model, event_type: str) -> LogEntry:
    return LogEntry.objects.select_related("event").get(event__root=f"{kind}:{row.pk}", event__type=event_type)


def text_of(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return " ".join(answer.content.decode().partition('id="content"')[2].split())


def named(browser: Client, tenant: Tenant, *roots: str) -> Any:
    return browser.get(reverse(NAMES), {"tenant": tenant.pk, "root": list(roots)})


# Entities whose names the signed-in account may not see


def test_an_entity_of_another_tenant_has_no_name_on_any_page(browser: Client, tenant: Tenant) -> None:
    foreign = make_organization(new_tenant(), "strangers", display_name="Strangers")
    event = EventFactory.create(tenant_id=tenant.pk, root=f"organization:{foreign.pk}", type="organization.updated")
    entry = LogEntryFactory.create(event=event)
    delivery = DeliveryFactory.create(tenant_id=tenant.pk, key=event.root, event=event.pk, state="dead")
    letter = DeadLetterFactory.create(delivery=delivery)

    places = [reverse(LOG), reverse(START), reverse(EVENTS), *(page_of_row(row) for row in (event, entry, delivery, letter))]
    for place in places:
        shown = text_of(browser, place)
        assert "Strangers" not in shown, place
        assert page_of_row(foreign) not in shown, place
        assert foreign.pk in shown, place
    found = named(browser, tenant, event.root).json()["entities"][event.root]
    assert found == {"text": foreign.pk, "url": "", "is_deleted": True}


def test_an_account_without_the_permission_sees_only_the_id_of_an_entity(
    browser: Client, tenant: Tenant, company: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "identity.view_organization", "identity.view_user")
    entry = entry_of("organization", company, "organization.member.added")

    for place in (reverse(LOG), reverse(START), page_of_row(entry)):
        shown = text_of(browser, place)
        assert "Analytical Engines" not in shown, place
        assert "Ada Lovelace" not in shown.partition("<summary>Message")[0], place
        assert company.pk in shown, place
        assert DELETED not in shown, place
    found = named(browser, tenant, f"organization:{company.pk}").json()["entities"]
    assert found == {f"organization:{company.pk}": {"text": company.pk, "url": "", "is_deleted": False}}


def test_a_deleted_entity_keeps_its_id_and_is_marked_as_deleted(browser: Client, tenant: Tenant, company: Organization) -> None:
    entry = entry_of("organization", company, "organization.created")
    delivery = DeliveryFactory.create(tenant_id=tenant.pk, key=entry.event.root, event=entry.event_id, event_id=entry.event.event_id)
    delete_organization(tenant_id=tenant.pk, organization_id=company.pk)

    for place in (reverse(LOG), reverse("admin:provisioning_delivery_changelist"), page_of_row(entry)):
        shown = text_of(browser, place)
        assert f"{DELETED}" in shown, place
        assert company.pk in shown, place
        assert f'href="{page_of_row(company)}"' not in shown, place
    assert "This organization no longer exists." in text_of(browser, page_of_row(delivery))
    assert named(browser, tenant, entry.event.root).json()["entities"][entry.event.root]["is_deleted"]


@pytest.mark.parametrize("query", [{}, {"root": "x" * 401}, {"root": "user:a", "tenant": "another"}])
def test_an_invalid_request_for_names_is_refused(browser: Client, tenant: Tenant, query: dict[str, str]) -> None:
    assert browser.get(reverse(NAMES), {"tenant": tenant.pk, **query}).status_code == 404
    assert browser.post(reverse(NAMES), {"tenant": tenant.pk, "root": "user:a"}).status_code == 405


def test_a_request_for_names_needs_the_permission_to_see_the_log(
    browser: Client, tenant: Tenant, company: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "events.view_logentry")

    assert named(browser, tenant, f"organization:{company.pk}").status_code == 403


# Entities with a name


def test_the_log_and_the_start_page_show_the_names_of_entities(
    browser: Client, tenant: Tenant, company: Organization, database_connection: Connection
) -> None:
    group = make_group(tenant, "Engineers")
    number_tenant(tenant.pk)

    for place in (reverse(LOG), reverse(START)):
        shown = text_of(browser, place)
        for name in ("Analytical Engines", "Engineers", database_connection.display_name or database_connection.name, ADA):
            assert f">{name}</a>" in shown, (place, name)
        assert group.pk not in shown.replace(f"group%3A{group.pk}", "").replace(page_of_row(group), ""), place


def test_the_page_of_an_event_shows_the_names_and_ids_of_all_its_entities(browser: Client, ada: User, company: Organization) -> None:
    entry = entry_of("organization", company, "organization.member.added")
    shown = text_of(browser, page_of_row(entry))

    assert "<h1>organization.<wbr>member.<wbr>added for Analytical Engines</h1>" in shown
    for row, name, key in ((company, "Analytical Engines", company.pk), (ada, ADA, ada.user_id)):
        assert f'<a href="{page_of_row(row)}">{name}</a>' in shown
        assert f'data-copy="{key}"' in shown


def test_the_page_of_an_event_shows_the_names_of_role_group_and_connection(
    browser: Client, tenant: Tenant, ada: User, database_connection: Connection
) -> None:
    group = make_group(tenant, "Directory", type="connection", connection_id=database_connection.pk)
    nested = make_group(tenant, "Nested", type="connection", connection_id=database_connection.pk)
    add_group_members(tenant_id=tenant.pk, group_id=group.pk, nested_ids=[nested.pk])
    number_tenant(tenant.pk)
    shown = text_of(browser, page_of_row(entry_of("group", group, "group.member.added")))

    for row in (group, nested, database_connection):
        assert f'href="{page_of_row(row)}"' in shown, row

    delete_group(tenant_id=tenant.pk, group_id=nested.pk)
    shown = text_of(browser, page_of_row(entry_of("group", group, "group.member.added")))
    assert f"Group {DELETED}" in shown
    assert f'data-copy="{nested.pk}"' in shown


def test_lists_show_the_names_of_entities_with_one_query_for_all_rows(
    browser: Client, tenant: Tenant, ada: User, company: Organization, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    def leave(root: str) -> None:
        event = EventFactory.create(tenant_id=tenant.pk, root=root)
        LogEntryFactory.create(event=event)
        DeadLetterFactory.create(delivery=DeliveryFactory.create(tenant_id=tenant.pk, key=root, event=event.pk, state="dead"))

    roots = [f"user:{ada.user_id}", f"organization:{company.pk}", f"group:{make_group(tenant).pk}", f"connection:{ada.connection_id}"]
    for root in roots:
        leave(root)
    names = ("logentry", "event"), ("delivery", "deadletter")
    places = [reverse(f"admin:{app}_{name}_changelist") for app, of in zip(("events", "provisioning"), names, strict=True) for name in of]
    for place in places:
        browser.get(place)
        with CaptureQueriesContext(database) as queries:
            assert "Analytical Engines" in text_of(browser, place)
        assert len([one for one in queries.captured_queries if "UNION ALL" in one["sql"]]) == 1
        for _ in range(3):
            leave(f"organization:{make_organization(tenant).pk}")
            leave(f"role:{make_role(tenant).pk}")
        with django_assert_num_queries(len(queries)):
            browser.get(place)


def test_the_table_of_deliveries_shows_the_names_of_their_entities(browser: Client, tenant: Tenant, company: Organization) -> None:
    from tests.provisioning.engine.logs import make_stream

    stream = make_stream(tenant)
    DeliveryFactory.create(tenant_id=tenant.pk, stream_id=stream.pk, key=f"organization:{company.pk}")

    assert f'<a href="{page_of_row(company)}">Analytical Engines</a>' in text_of(browser, f"{page_of_row(stream)}?tab=deliveries")


def test_the_live_page_gets_the_names_and_the_pages_of_entities(browser: Client, tenant: Tenant, ada: User, company: Organization) -> None:
    user, organization = f"user:{ada.user_id}", f"organization:{company.pk}"
    found = named(browser, tenant, user, organization, "unknown").json()["entities"]

    assert found[user] == {"text": ADA, "url": page_of_row(ada), "is_deleted": False}
    assert found[organization] == {"text": "Analytical Engines", "url": page_of_row(company), "is_deleted": False}
    assert found["unknown"] == {"text": "unknown", "url": "", "is_deleted": False}


def test_the_live_page_gets_a_limited_number_of_names_at_once(browser: Client, tenant: Tenant) -> None:
    roots = [f"user:db|{number}" for number in range(NAMES_AT_ONCE + 5)]

    assert list(named(browser, tenant, *roots).json()["entities"]) == roots[:NAMES_AT_ONCE]


def test_an_event_with_a_broken_body_has_a_page(browser: Client, tenant: Tenant) -> None:
    for body in (b"\xff", b"[1]", json.dumps({"type": "group.member.added", "data": {"object": {"group": [], "member": 5}}}).encode()):
        event = EventFactory.create(tenant_id=tenant.pk, root="group:grp_1", type="group.member.added", body=body)
        assert "What changed" in text_of(browser, page_of_row(LogEntryFactory.create(event=event)))
        assert "What changed" in text_of(browser, page_of_row(Event.objects.get(pk=event.pk)))


def test_the_page_of_an_event_leaves_out_fields_that_have_no_value(browser: Client, tenant: Tenant, company: Organization) -> None:
    created = text_of(browser, page_of_row(entry_of("organization", company, "organization.created")))
    joined = text_of(browser, page_of_row(entry_of("organization", company, "organization.member.added")))

    assert "field-entity_page" in created
    assert "field-others" not in created
    assert "field-who" not in created
    assert "field-others" in joined


def test_the_page_of_an_event_links_to_its_log_entry_while_that_exists(browser: Client, company: Organization) -> None:
    entry = entry_of("organization", company, "organization.created")
    place = page_of_row(entry.event)
    assert f'<a href="{page_of_row(entry)}">Position {entry.position}</a>' in text_of(browser, place)

    LogEntry.objects.filter(pk=entry.pk).delete()
    assert "Not in the log" in text_of(browser, place)
