"""The search over all kinds of objects: the results, which staff get which results, and the cost of a search."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from authapi.models import Client as AuthClient
from config.console import global_search
from config.console.admin_site import site
from config.console.global_search import KINDS
from events.models import Event, LogEntry
from identity.models import Group, Organization, Tenant, User
from tests.factories.admin import Rows, browser_of, new_staff, new_tenant, take_from_administrators


@pytest.fixture
def rows(committed_db: None) -> Rows:
    return Rows(new_tenant("mine"))


def titles(browser: Client, term: str) -> dict[str, list[str]]:
    page = browser.get(reverse("admin:search"), {"q": term})
    assert page.status_code == 200, term
    return {hits.kind: [hit.title for hit in hits.hits] for hits in page.context["found"]}


def test_a_user_is_found_by_email_address_or_user_id(rows: Rows) -> None:
    user: User = rows.of(User)
    browser = browser_of(new_staff(rows.tenant))
    address = str(user.email)
    for term in (address, address[:6], user.user_id):
        assert titles(browser, term)["Users"] == [address], term


def test_each_kind_of_object_is_found_by_its_identifiers(rows: Rows) -> None:
    browser = browser_of(new_staff(rows.tenant))
    entry: LogEntry = rows.of(LogEntry)
    for model, term in (
        (AuthClient, rows.of(AuthClient).client_id),
        (Organization, rows.of(Organization).pk),
        (Group, rows.of(Group).name),
        (Event, entry.event.event_id),
    ):
        kind = str(model._meta.verbose_name_plural).capitalize()
        assert len(titles(browser, term)[kind]) == 1, (kind, term)


def test_nothing_of_another_tenant_is_found(rows: Rows) -> None:
    other = Rows(new_tenant("other"))
    browser = browser_of(new_staff(rows.tenant))
    for term in (other.of(User).email, other.of(User).user_id, other.of(AuthClient).client_id, other.of(LogEntry).event.event_id):
        assert titles(browser, term) == {}, term


def test_an_account_finds_only_kinds_that_it_may_view(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    user = rows.of(User)
    browser = browser_of(new_staff(rows.tenant))
    assert "Users" in titles(browser, user.email)
    take_from_administrators(monkeypatch, "identity.view_user", "identity.change_user")
    assert "Users" not in titles(browser, user.email)


@pytest.mark.parametrize("term", ["", "   ", "%", "\\", "a:b", "(", "email:(", "x" * 5000, "evt_", "db|", "٣"])
def test_a_search_without_results_says_what_to_enter(rows: Rows, term: str) -> None:
    browser = browser_of(new_staff(rows.tenant))
    page = browser.get(reverse("admin:search"), {"q": term})
    assert page.status_code == 200
    assert b"Enter a" in page.content


def test_a_search_by_name_reads_only_the_newest_rows(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    old = rows.of(User)
    browser = browser_of(new_staff(rows.tenant))
    monkeypatch.setattr(global_search, "WALK", 1)
    assert titles(browser, old.email[:6])["Users"] == [old.email]
    monkeypatch.setattr(global_search, "WALK", 0)
    assert "Users" not in titles(browser, old.email[:6])


def test_a_search_that_times_out_for_one_kind_shows_the_other_kinds(rows: Rows, settings: object) -> None:
    user = rows.of(User)
    browser = browser_of(new_staff(rows.tenant))
    settings.USER_SEARCH_TIMEOUT_MS = 0  # type: ignore[attr-defined]
    page = browser.get(reverse("admin:search"), {"q": user.email})
    assert "This search took too long." in page.content.decode()


def test_every_kind_of_result_is_registered_on_the_site() -> None:
    assert {label for label in KINDS if not site.is_registered(apps.get_model(label))} == set()


def test_an_operator_finds_the_rows_of_every_tenant(rows: Rows) -> None:
    other: Tenant = new_tenant("other")
    browser = browser_of(new_staff(None))
    client_id = Rows(other).of(AuthClient).client_id
    assert len(titles(browser, client_id)["Clients"]) == 1
