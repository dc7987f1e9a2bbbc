"""The header on the page of an event or log entry: a button to its entity, a copy of the message, and links to similar events."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from events.models import Event, LogEntry
from identity.models import Connection, Tenant, User
from identity.services.users import delete_user
from tests.events.test_admin import browser, user
from tests.factories.admin import take_from_administrators
from tests.factories.admin_pages import page_of_row

__all__ = ["browser", "user"]

MODELS = ["logentry", "event"]


def page_of(browser: Client, user: User, model: str, event_type: str = "user.created") -> str:
    event = Event.objects.get(tenant_id=user.tenant_id, type=event_type)
    answer = browser.get(reverse(f"admin:events_{model}_change", args=(quote(event.pk),)))
    assert answer.status_code == 200
    return answer.content.decode()


def head_of(page: str) -> str:
    return page.partition('<header class="object-header">')[2].partition("</header>")[0]


def links_of(head: str) -> dict[str, str]:
    return {text: unescape(address) for address, text in re.findall(r'<a href="([^"]*)"\s*>([^<]*)</a>', head)}


@pytest.mark.parametrize("model", MODELS)
def test_the_button_of_an_event_shows_its_entity(browser: Client, user: User, model: str) -> None:
    assert f'<a class="button" href="{page_of_row(user)}">Show user</a>' in head_of(page_of(browser, user, model))


@pytest.mark.parametrize("model", MODELS)
def test_the_menu_of_an_event_leads_to_events_of_the_same_entity_and_type(browser: Client, user: User, model: str) -> None:
    log, live = reverse("admin:events_logentry_changelist"), reverse("admin:events_live")
    entity = urlencode({"entity": f"user:{user.user_id}"})

    assert links_of(head_of(page_of(browser, user, model))) == {
        "All events of this entity": f"{log}?{entity}",
        "All events of this type": f"{log}?type=user.created",
        "Live events of this entity": f"{live}?{entity}",
        "Live events of this type": f"{live}?event_type=user.created",
    }


def test_the_linked_log_and_live_page_have_the_filters_of_the_links(browser: Client, user: User) -> None:
    links = links_of(head_of(page_of(browser, user, "logentry")))

    listed = browser.get(links["All events of this type"]).context["cl"].result_list
    assert [row.event.type for row in listed] == ["user.created"]
    live = browser.get(links["Live events of this type"]).context
    assert live["chosen_types"] == {"user.created"}
    assert browser.get(links["Live events of this entity"]).context["entity"] == f"user:{user.user_id}"


@pytest.mark.parametrize("model", MODELS)
def test_the_menu_copies_the_message_of_the_page(browser: Client, user: User, model: str) -> None:
    page = page_of(browser, user, model)
    (copied,) = re.findall(r'<button type="button" data-copy-of="([^"]*)" hidden>Copy as JSON</button>', head_of(page))
    assert page.count(f'id="{copied}"') == 1
    assert '"user.created"' in unescape(page.partition(f'id="{copied}"')[2].partition("</pre>")[0])


def test_an_event_of_a_deleted_entity_has_no_button(browser: Client, user: User) -> None:
    delete_user(tenant_id=user.tenant_id, user_id=user.user_id)
    head = head_of(page_of(browser, user, "event"))
    assert "Copy as JSON" in head
    assert '<a class="button"' not in head


def test_accounts_without_permission_see_no_link_to_the_entity_or_to_the_log(
    browser: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "identity.view_user", "events.view_logentry")
    page = page_of(browser, user, "event")
    assert "Copy as JSON" in head_of(page)
    assert links_of(head_of(page)) == {}
    assert page_of_row(user) not in page
    for name in ("events_logentry_changelist", "events_live"):
        assert f"{reverse(f'admin:{name}')}?" not in page


def test_the_position_of_an_event_is_no_link_without_permission_for_the_log(
    browser: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_from_administrators(monkeypatch, "events.view_logentry")
    position = LogEntry.objects.get(event__tenant_id=user.tenant_id, event__type="user.created").position
    assert f'<div class="readonly">Position {position}</div>' in page_of(browser, user, "event")


@pytest.mark.parametrize("permission", ["events.view_logentry", "events.view_event"])
def test_the_last_events_of_a_user_are_linked_only_to_pages_that_the_account_may_see(
    browser: Client, user: User, monkeypatch: pytest.MonkeyPatch, permission: str
) -> None:
    take_from_administrators(monkeypatch, permission)
    event = Event.objects.get(tenant_id=user.tenant_id, type="user.created")
    shown = browser.get(page_of_row(user), {"tab": "events-and-deliveries"}).content.decode()
    assert event.event_id in shown
    for model in MODELS:
        is_linked = permission != f"events.view_{model}" and (model == "logentry" or permission == "events.view_logentry")
        assert (reverse(f"admin:events_{model}_change", args=(quote(event.pk),)) in shown) is is_linked
    log = f"{reverse('admin:events_logentry_changelist')}?entity="
    assert (log in shown) is (permission != "events.view_logentry")


def test_an_event_without_a_position_also_has_a_button_to_its_entity(
    browser: Client, tenant: Tenant, database_connection: Connection
) -> None:
    event = Event.objects.get(tenant_id=tenant.pk, type="connection.created")
    assert not LogEntry.objects.filter(pk=event.pk).exists()
    shown = browser.get(reverse("admin:events_event_change", args=(quote(event.pk),))).content.decode()
    assert f'<a class="button" href="{page_of_row(database_connection)}">Show connection</a>' in head_of(shown)
