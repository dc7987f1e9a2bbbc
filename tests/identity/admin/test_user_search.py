"""The search field of the list of users, which accepts plain words and queries of single fields (`name:ada`)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.urls import reverse

from identity.models import Connection, Tenant, User
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def people(database_connection: Connection) -> dict[str, User]:
    return {
        name: make_user(connection=database_connection, email=f"{name}@{domain}", name=name.title(), app_metadata={"plan": plan})
        for name, domain, plan in (("ada", "corp.com", "gold"), ("bob", "corp.com", "free"), ("joe", "other.org", "gold"))
    }


def listed(browser: Client, search: str) -> tuple[list[str], str]:
    """Return the lower-case names of the listed users in order, and the HTML of the page."""
    answer: Any = browser.get(reverse("admin:identity_user_changelist"), {"q": search})
    assert answer.status_code == 200
    return [row.name.lower() for row in answer.context["cl"].result_list], answer.content.decode()


def test_a_query_finds_the_users_that_match_its_fields(browser: Client, people: dict[str, User]) -> None:
    for query, wanted in {
        "email:*@corp.com": ["bob", "ada"],
        "email:*@corp.com AND NOT app_metadata.plan:gold": ["bob"],
        "NOT app_metadata.plan:gold": ["ada", "bob", "joe"][1:2],
        "name:jo*": ["joe"],
        f"user_id:{people['ada'].user_id.replace('|', '|')}": ["ada"],
        "picture:*nothing*": [],
    }.items():
        assert listed(browser, query)[0] == wanted, query


def test_plain_words_and_addresses_are_searched_without_query_syntax(browser: Client, people: dict[str, User]) -> None:
    assert listed(browser, "ada@corp.com")[0] == ["ada"]
    assert listed(browser, "jo")[0] == ["joe"]
    assert listed(browser, people["bob"].user_id)[0] == ["bob"]


@pytest.mark.parametrize("identifier", ["my-conn:123", "urn:x-corp:user:7", "https://idp-a.example.test:8443/u"])
def test_an_id_that_contains_colons_is_searched_as_an_id(browser: Client, database_connection: Connection, identifier: str) -> None:
    user = make_user(connection=database_connection, identifier=identifier, name="Zoe")
    assert listed(browser, user.user_id)[0] == ["zoe"]


def test_a_query_that_takes_too_long_is_reported_on_the_page(browser: Client, people: dict[str, User], settings: LazySettings) -> None:
    settings.USER_SEARCH_TIMEOUT_MS = 50
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": False}) as other:
        other.execute("LOCK TABLE identity_linkedidentity IN ACCESS EXCLUSIVE MODE")
        answer: Any = browser.get(reverse("admin:identity_user_changelist"), {"q": "identities.isSocial:false"}, follow=True)
        other.rollback()
    assert answer.status_code == 200
    assert "The search for identities.isSocial:false took too long" in answer.content.decode()


def test_an_invalid_query_shows_its_error_and_lists_no_user(browser: Client, people: dict[str, User]) -> None:
    for query, reason in {
        "nosuch:x": "the field nosuch is unknown; known fields: user_id",
        "name:*jo": "3 letters or digits",
        "name:(ada": "a bracket may not be closed",
        "blocked:maybe": "blocked must be true or false",
    }.items():
        shown, page = listed(browser, query)
        assert (shown, "Invalid search: " in page, reason in page) == ([], True, True), query
        assert page.count("Invalid search: ") == 1


def test_an_operator_without_a_selected_tenant_is_asked_to_select_a_tenant(tenant: Tenant, people: dict[str, User]) -> None:
    shown, page = listed(browser_of(new_staff(None)), "name:*ada*")
    assert (shown, "Choose a tenant first" in page) == ([], True)
