"""Pages of the admin that are not lists, and the searches of the event log, do not show or change rows of another tenant."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from authapi.models import Client as AuthClient
from config.console.admin_site import site
from events.models import LogEntry
from identity.admin.tenant_page import TenantPage
from identity.models import User
from tests.config.console.test_admin_two_tenants import state_of
from tests.factories.admin import Rows, addresses_of_page, browser_of, new_staff, new_tenant


@pytest.fixture
def other(committed_db: None) -> Rows:
    """Return another tenant with a user, a client and an entry in its log."""
    rows = Rows(new_tenant("other"))
    for model in (User, AuthClient, LogEntry):
        rows.of(model)
    return rows


@pytest.fixture
def browser(committed_db: None) -> Client:
    return browser_of(new_staff(new_tenant("mine")))


def found(browser: Client, query: dict[str, str]) -> set[Any]:
    page = browser.get(reverse("admin:events_logentry_changelist"), query)
    assert page.status_code == 200, query
    return {row.pk for row in page.context["cl"].result_list}


def test_no_search_of_the_log_shows_an_event_of_another_tenant(browser: Client, other: Rows) -> None:
    entry = other.of(LogEntry)
    position = str(entry.position)
    named = [entry.event.root, entry.event.event_id, f"user@{other.tenant.pk}.test", other.of(User).user_id]
    places = [{"before": str(entry.position + 1)}, {"after": str(entry.position - 1)}, {"before": str(entry.pk + 1)}]
    for query in ({"first": position, "last": position}, {"type": entry.event.type}, *places, *({"entity": name} for name in named)):
        assert entry.pk not in found(browser, query), query


@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_no_page_of_a_tenant_shows_or_changes_another_tenant(browser: Client, other: Rows, page: TenantPage) -> None:
    before = state_of(other.tenant)
    for address in addresses_of_page(page):
        for query in ({}, {"tenant": other.tenant.pk}, {"client": other.of(AuthClient).client_id}):
            answer = browser.get(address, query)
            assert answer.status_code in {200, 404, 405}, (address, query)
            assert other.tenant.pk not in answer.content.decode(), (address, query)
            posted = browser.post(address, query, follow=True)
            assert posted.status_code in {200, 404, 405}, (address, query)
            assert other.tenant.pk not in posted.content.decode(), (address, query)
    assert state_of(other.tenant) == before


def test_staff_of_the_other_tenant_find_its_entry_with_the_same_searches(other: Rows) -> None:
    entry = other.of(LogEntry)
    own = browser_of(new_staff(other.tenant))
    for query in ({}, {"entity": entry.event.root}, {"type": "", "first": str(entry.position)}):
        assert entry.pk in found(own, query), query
