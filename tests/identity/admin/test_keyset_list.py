"""Keyset pages of a list. The pages show each row once, and a page says if its search stopped before the last row."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from authapi.models import Session
from config.console.admin_site import site
from foundation.admin.keyset_list import Order
from identity.models import Connection, Tenant, User
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def people(tenant: Tenant, database_connection: Connection, monkeypatch: pytest.MonkeyPatch) -> list[User]:
    """Create five users and return them in the order of the list, the newest first. The list shows two users on a page."""
    monkeypatch.setattr(site.get_model_admin(User), "list_per_page", 2)
    return [
        make_user(connection=database_connection, email=f"person{number}@example.test", name=_NAMES[number % 2]) for number in range(5)
    ][::-1]


_NAMES = ("Even", "Odd")


def listed(browser: Client, query: str = "") -> Any:
    answer = browser.get(f"{reverse('admin:identity_user_changelist')}{query}")
    assert answer.status_code == 200
    return answer.context["cl"]


def shown(page: Any) -> list[int]:
    return [row.pk for row in page.result_list]


def test_next_pages_show_every_row_once_and_previous_pages_show_them_again(browser: Client, people: list[User]) -> None:
    keys = [person.pk for person in people]
    first = listed(browser)
    second = listed(browser, first.after_url)
    third = listed(browser, second.after_url)

    assert [shown(first), shown(second), shown(third)] == [keys[:2], keys[2:4], keys[4:]]
    assert (first.before_url, first.first_url, third.after_url) == ("", "", "")
    assert shown(listed(browser, third.before_url)) == keys[2:4]
    assert shown(listed(browser, listed(browser, third.before_url).before_url)) == keys[:2]
    assert shown(listed(browser, third.first_url)) == keys[:2]


def test_inserted_and_deleted_rows_do_not_move_other_rows_to_another_page(
    browser: Client, people: list[User], database_connection: Connection
) -> None:
    onward = listed(browser).after_url
    make_user(connection=database_connection, email="newest@example.test")
    people[1].delete()

    assert shown(listed(browser, onward)) == [people[2].pk, people[3].pk]


def test_a_search_without_an_index_stops_at_a_limit_and_continues_on_the_next_page(
    browser: Client, people: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foundation.admin.keyset_list.WALK", 3)
    found, pages, page = [], 0, listed(browser, "?q=Even")
    while True:
        found += shown(page)
        pages += 1
        if not page.after_url:
            break
        assert len(shown(page)) == 2 or page.page.is_partial
        page = listed(browser, page.after_url)

    assert found == [person.pk for person in people if person.name == "Even"]
    assert pages <= 3


def test_an_empty_page_before_the_end_says_that_there_are_more_rows_to_search(
    browser: Client, people: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foundation.admin.keyset_list.WALK", 3)
    answer = browser.get(f"{reverse('admin:identity_user_changelist')}?q=nobody-is-called-so").content.decode()

    assert "No row of this page matches." in answer
    assert "No matches." not in answer


def test_links_to_other_pages_keep_the_filter_but_a_new_filter_starts_over(browser: Client, people: list[User]) -> None:
    onward = listed(browser, listed(browser, "?email_verified__exact=0").after_url)

    assert "email_verified__exact=0" in onward.before_url
    choices = [choice["query_string"] for spec in onward.filter_specs for choice in spec.choices(onward)]
    assert choices
    assert not [query for query in choices if "after=" in query or "before=" in query]


@pytest.mark.parametrize(
    "place", ["", "x", "[]", "[1,2]", '["x","y"]', '["2026-01-01T00:00:00+00:00","99999999999999999999999"]', "[[[[", "{}"]
)
def test_an_invalid_key_shows_the_first_page(browser: Client, people: list[User], place: str) -> None:
    answer = browser.get(reverse("admin:identity_user_changelist"), {"after": place})

    assert shown(answer.context["cl"]) == [person.pk for person in people[:2]]


@pytest.mark.parametrize("names", [("-created_at", "id"), ("-created_at", "-pk"), ("created_at",), ("-pk",)])
def test_the_rows_after_a_key_follow_it_in_the_order_of_the_list(tenant: Tenant, names: tuple[str, ...], people: list[User]) -> None:
    order = Order.of(User, names)
    rows = list(order.sort(User.objects.of(tenant.pk)))

    for place, row in enumerate(rows):
        key = order.read(order.written(order.key_of(row)))
        assert key is not None
        assert list(order.sort(order.beyond(User.objects.of(tenant.pk), key))) == rows[place + 1 :]
        back = order.reversed()
        assert list(back.sort(back.beyond(User.objects.of(tenant.pk), key))) == rows[:place][::-1]


def test_the_keys_of_lists_use_only_columns_that_are_never_null() -> None:
    for model, page in site._registry.items():
        names = page.ordering or model._meta.ordering or ("-pk",)
        if getattr(page, "grows", False):
            assert not [name for name in Order.of(model, names).names if model._meta.get_field(name).null], model
    assert Order.of(Session, ("-created_at", "id")).columns == (("created_at", True), ("id", False))
