"""Long names of event types on a phone. A line of a name ends after a dot, and never in the middle of a word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse

from events.log.numbering import number_tenant
from events.models import LogEntry
from identity.models import Connection, Organization, Tenant, User
from identity.services.memberships import add_connection, remove_connection
from tests.factories.organizations import make_organization
from tests.peers.accessibility import PHONE
from tests.peers.chromium import PROGRAM, Page
from tests.peers.test_admin_of_the_stream import LIVE, LOG, browser, connected, publish, shows, user, visit, web

__all__ = ["browser", "user", "visit", "web"]

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

TYPE = "organization.connection.removed"
# This script returns the number of all parts of names (a part ends with a dot), and the parts that are broken over several lines.
BROKEN = """(() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const broken = [];
  let count = 0;
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!/^[a-z]+\\.$/.test(node.data.trim()) || !node.parentElement.offsetHeight) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((box) => box.width > 0);
    count += 1;
    if (lines.length > 1) broken.push(node.data);
  }
  return [count, broken];
})()"""


@pytest.fixture
def company(tenant: Tenant, database_connection: Connection) -> Organization:
    company = make_organization(tenant, "engines", display_name="Analytical Engines")
    named = {"tenant_id": tenant.pk, "organization_id": company.pk, "connection_id": database_connection.pk}
    add_connection(**named)
    remove_connection(**named)
    number_tenant(tenant.pk)
    return company


def broken_on_a_phone(page: Page) -> tuple[bool, list[str]]:
    """Return whether the page contains names of event types, and the parts of names that are broken over several lines."""
    page.show_as(width=PHONE)
    count, broken = page.evaluate(BROKEN)
    page.show_as()
    return count > 0, broken


def test_no_name_of_an_event_type_breaks_within_a_word_on_a_phone(
    visit: Callable[[str], Page], tenant: Tenant, company: Organization
) -> None:
    entry = LogEntry.objects.get(tenant_id=tenant.pk, event__type=TYPE)
    organization = reverse("admin:identity_organization_change", args=(quote(company.pk),))
    places = {
        "entry": reverse("admin:events_logentry_change", args=(quote(entry.pk),)),
        "log": LOG,
        "events": reverse("admin:events_event_changelist"),
        "start": reverse("admin:index"),
        "organization": f"{organization}?tab=events",
        "search": f"{reverse('admin:search')}?q={entry.event.event_id}",
    }
    assert {name: broken_on_a_phone(visit(address)) for name, address in places.items()} == dict.fromkeys(places, (True, []))


def test_live_events_break_no_name_within_a_word_on_a_phone(
    visit: Callable[[str], Page], company: Organization, user: User, database_connection: Connection
) -> None:
    page = connected(visit(LIVE))
    add_connection(tenant_id=company.tenant_id, organization_id=company.pk, connection_id=database_connection.pk)
    publish(company.tenant_id)
    shows(page, 1)
    page.evaluate("document.querySelector('.live-filter').open = true")

    assert broken_on_a_phone(page) == (True, [])
    assert page.text("#live-list .live-type") == "organization.connection.added"
