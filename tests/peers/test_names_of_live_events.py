"""The names of entities in live events, in a real browser.

The page requests the names, replaces old names by new names, and repeats a failed request.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from events.log.numbering import number_tenant
from identity.models import Connection, Organization, Tenant, User
from identity.services.memberships import add_members
from identity.services.organizations import delete_organization, update_organization
from tests.factories.models.identity import UserFactory
from tests.factories.organizations import make_organization
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Page
from tests.peers.test_admin_of_the_stream import LIVE, MARKUP, SHOWN, browser, change, connected, names_in, publish, shows, user, visit, web

__all__ = ["browser", "user", "visit", "web"]

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

NAMES = "[...document.querySelectorAll('#live-list .live-entity a')].map((link) => link.textContent)"


@pytest.fixture
def company(tenant: Tenant, user: User) -> Organization:
    company = make_organization(tenant, "engines", display_name="Analytical Engines")
    number_tenant(tenant.pk)
    return company


def join(company: Organization, user: User) -> None:
    """Add the user to the organization, which records an event with the id of the organization. Send the event to the page."""
    add_members(tenant_id=company.tenant_id, organization_id=company.pk, user_ids=[user.user_id])
    publish(company.tenant_id)


def test_an_event_shows_its_entities_with_links_and_ids_to_copy(visit: Callable[[str], Page], tenant: Tenant, user: User) -> None:
    company = make_organization(tenant, "engines", display_name="Analytical Engines")
    number_tenant(tenant.pk)
    page = connected(visit(LIVE))
    add_members(tenant_id=tenant.pk, organization_id=company.pk, user_ids=[user.user_id])
    publish(tenant.pk)
    shows(page, 1)
    page.until("document.querySelectorAll('#live-list .live-entity a').length === 2")

    assert page.evaluate("[...document.querySelectorAll('.live-entity a')].map((link) => link.textContent)") == [
        "Analytical Engines",
        f"{MARKUP} (ada@example.test)",
    ]
    links = [
        reverse("admin:identity_organization_change", args=(quote(company.pk),)),
        reverse("admin:identity_user_change", args=(quote(user.pk),)),
    ]
    assert page.evaluate("[...document.querySelectorAll('.live-entity a')].map((link) => link.getAttribute('href'))") == links
    page.evaluate(f"{SHOWN}[0].querySelector('details').open = true")
    page.until("document.querySelectorAll('.live-entities button').length >= 2")
    copied = page.evaluate("[...document.querySelectorAll('.live-entities button')].map((button) => button.dataset.copy)")
    assert {company.pk, user.user_id} <= set(copied)
    if AXE.exists():
        assert barriers_of(page) == []

    delete_organization(tenant_id=tenant.pk, organization_id=company.pk)
    publish(tenant.pk)
    page.until("[...document.querySelectorAll('.live-entity .badge')].some((badge) => badge.textContent === 'Deleted')")
    assert company.pk in page.text("#live-list")
    assert page.evaluate("document.title") != "taken over"
    assert page.complaints == []


def test_the_filter_finds_the_name_of_an_entity_that_the_event_does_not_contain(
    visit: Callable[[str], Page], tenant: Tenant, user: User
) -> None:
    company = make_organization(tenant, "engines", display_name="Analytical Engines")
    other = make_organization(tenant, "mills", display_name="Grain Mills")
    number_tenant(tenant.pk)
    page = connected(visit(LIVE))
    page.fill("#live-entity", "analytical")
    for organization in (other, company):
        add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
    publish(tenant.pk)

    shows(page, 1)
    page.until("document.querySelector('#live-list li:not([hidden]) .live-entity a') !== null")
    assert page.text("#live-list li:not([hidden]) .live-entity a") == "Analytical Engines"
    # The page kept the event of the other organization only until the name of this organization arrived.
    page.until("document.querySelectorAll('#live-list li').length === 1")
    assert page.complaints == []


def test_a_new_name_of_an_entity_replaces_the_old_name(visit: Callable[[str], Page], company: Organization, user: User) -> None:
    page = connected(visit(LIVE))
    join(company, user)
    page.until(f"{NAMES}[0] === 'Analytical Engines'")

    update_organization(tenant_id=company.tenant_id, organization_id=company.pk, changes={"display_name": "Difference Engines"})
    publish(company.tenant_id)

    page.until(f"{NAMES}.filter((name) => name === 'Difference Engines').length === 2")
    assert page.complaints == []


def test_a_name_is_requested_again_after_a_failed_request(visit: Callable[[str], Page], company: Organization, user: User) -> None:
    page = connected(visit(LIVE))
    page.fill("#live-entity", "analytical")
    page.send("Network.enable")
    page.send("Network.setBlockedURLs", urls=["*/events/live/names/*"])
    join(company, user)
    page.until("performance.getEntriesByType('resource').some((one) => one.name.includes('/live/names/'))")
    # Without the name of the organization, the page cannot tell whether the filter selects the event.
    shows(page, 0)

    page.send("Network.setBlockedURLs", urls=[])

    shows(page, 1)
    assert page.evaluate(NAMES)[0] == "Analytical Engines"


@pytest.fixture
def other(tenant: Tenant) -> Organization:
    """Return an organization whose events the filter `engines` selects only after the page has received its name."""
    other = make_organization(tenant, "mills", display_name="Difference Engines")
    number_tenant(tenant.pk)
    return other


def with_full_window(page: Page, company: Organization) -> Page:
    """Set the filter `engines`, fill the list with 20 events that it selects, and then block the requests for names."""
    page.fill("#live-entity", "engines")
    for number in range(20):
        update_organization(tenant_id=company.tenant_id, organization_id=company.pk, changes={"display_name": f"Engines {number}"})
    publish(company.tenant_id)
    shows(page, 20)
    page.until(f"new Set({NAMES}).size === 1 && {NAMES}[0] === 'Engines 19'")
    page.send("Network.enable")
    page.send("Network.setBlockedURLs", urls=["*/events/live/names/*"])
    return page


def test_an_entry_that_appears_late_is_counted_as_newer_in_a_list_that_is_scrolled_up(
    visit: Callable[[str], Page], company: Organization, other: Organization, user: User
) -> None:
    page = with_full_window(connected(visit(LIVE)), company)
    page.evaluate("document.getElementById('live-scroll').scrollTop = 0")
    page.until("!document.getElementById('live-newest').hidden")
    join(other, user)
    page.until("document.querySelectorAll('#live-list li').length === 21")
    assert page.text("#live-newest") == "Go to the newest"
    shows(page, 20)

    page.send("Network.setBlockedURLs", urls=[])

    shows(page, 21)
    assert page.text("#live-newest") == "Go to the newest (1 more)"
    assert page.evaluate("document.getElementById('live-scroll').scrollTop") == 0


def test_a_list_at_its_end_scrolls_to_an_entry_that_appears_late(
    visit: Callable[[str], Page], company: Organization, other: Organization, user: User
) -> None:
    page = with_full_window(connected(visit(LIVE)), company)
    join(other, user)
    page.until("document.querySelectorAll('#live-list li').length === 21")
    page.send("Network.setBlockedURLs", urls=[])

    shows(page, 21)
    page.until(
        "((list) => list.scrollHeight > list.clientHeight && list.scrollHeight - list.scrollTop - list.clientHeight < 1)"
        "(document.getElementById('live-scroll'))"
    )
    assert page.evaluate("document.getElementById('live-newest').hidden")


def test_an_event_that_the_filter_does_not_select_does_not_scroll_the_list(
    visit: Callable[[str], Page], company: Organization, tenant: Tenant, user: User
) -> None:
    mills = make_organization(tenant, "mills", display_name="Grain Mills")
    number_tenant(tenant.pk)
    page = with_full_window(connected(visit(LIVE)), company)
    place = "document.getElementById('live-scroll').scrollTop"
    # The list shows its end. Opening the newest entry does not scroll the list, so no scroll event occurs.
    page.evaluate(f"{SHOWN}.at(-1).querySelector('summary').click()")
    page.until(f"{SHOWN}.at(-1).querySelector('pre') !== null")
    before = page.evaluate(place)

    join(mills, user)
    # The page keeps the entry until the name arrives, and then removes the entry.
    page.until("document.querySelectorAll('#live-list li').length === 21")
    assert page.evaluate(place) == before
    page.send("Network.setBlockedURLs", urls=[])
    page.until("document.querySelectorAll('#live-list li').length === 20")
    assert page.evaluate(place) == before

    update_organization(tenant_id=company.tenant_id, organization_id=company.pk, changes={"display_name": "Engines 20"})
    publish(company.tenant_id)
    shows(page, 21)
    assert page.text("#live-newest") == "Go to the newest (1 more)"
    assert page.evaluate(place) == before
    page.click("#live-newest")
    page.until("document.getElementById('live-newest').hidden")
    assert page.complaints == []


def test_only_events_that_the_filter_selects_are_counted_as_newer(
    visit: Callable[[str], Page], user: User, database_connection: Connection
) -> None:
    other = UserFactory.create(tenant_id=user.tenant_id, connection=database_connection, email="b@example.test")
    number_tenant(user.tenant_id)
    page = connected(visit(LIVE))
    page.fill("#live-entity", "ada@example.test")
    for number in range(20):
        change(user, f"early {number}")
    shows(page, 20)
    page.evaluate("document.getElementById('live-scroll').scrollTop = 0")
    page.until("!document.getElementById('live-newest').hidden")

    change(other, "left out")
    change(user, "late")

    shows(page, 21)
    assert page.text("#live-newest") == "Go to the newest (1 more)"


def test_an_empty_list_says_that_no_event_matches_the_filter(visit: Callable[[str], Page], user: User) -> None:
    page = connected(visit(LIVE))
    assert "No events yet." in page.text("#live-scroll")
    change(user, "one")
    shows(page, 1)
    assert page.evaluate("document.getElementById('live-empty').hidden")

    page.fill("#live-entity", "grace")
    shows(page, 0)
    assert page.text("#live-scroll").strip() == "No event matches the filter."
    page.fill("#live-entity", "")
    shows(page, 1)
    assert names_in(page) == ["one"]
