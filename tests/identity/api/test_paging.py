"""The three formats of a list: a plain array, pages with totals, and checkpoints (`take` and `from`)."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

from identity.models import Connection, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.management import Management

ODD_QUERIES: list[Any] = [
    {"page": "-1"},
    {"page": "x"},
    {"page": "1.5"},
    {"page": "99999999999999999999"},
    {"page": "\u0663"},
    {"per_page": "101"},
    {"take": "0"},
    {"take": "101"},
    {"take": "x"},
    {"include_totals": "1"},
    # The checkpoint format ignores the parameters of pages, but refuses invalid values of these parameters.
    {"take": "1", "include_totals": "maybe"},
    {"take": "1", "per_page": "1000"},
    # A parameter that occurs twice is ambiguous.
    [("connection", "people"), ("connection", "others")],
    [("per_page", "1"), ("per_page", "2")],
    [("include_fields", "true"), ("include_fields", "false")],
    {"include_fields": "yes"},
    {"search_engine": "v9"},
    {"connection": "a\x00b"},
    {"fields": "\x00"},
]


@pytest.fixture
def people(database_connection: Connection) -> list[str]:
    """Create seven users and return their ids, the oldest user first."""
    return [make_user(connection=database_connection).user_id for _ in range(7)]


def ids(users: list[dict[str, Any]]) -> list[str]:
    return [user["user_id"] for user in users]


def test_a_list_without_parameters_is_a_plain_array_in_order_of_creation(api: Management, people: list[str]) -> None:
    assert ids(api.get("users").json) == people
    assert ids(api.get("users", {"include_totals": "false", "page": 1, "per_page": 3}).json) == people[3:6]


def test_a_page_contains_its_position_in_the_list(api: Management, people: list[str]) -> None:
    page = api.get("users", {"include_totals": "true", "page": 2, "per_page": 3}).json
    assert list(page) == ["start", "limit", "length", "total", "users"]
    assert (page["start"], page["limit"], page["length"], page["total"]) == (6, 3, 1, 7)
    assert ids(page["users"]) == people[6:]


def test_a_page_past_the_end_is_empty_and_not_an_error(api: Management, people: list[str]) -> None:
    for number in (3, 100_000_000):
        answer = api.get("users", {"include_totals": "true", "page": number, "per_page": 100})
        assert (answer.status, answer.json["users"], answer.json["total"]) == (200, [], 7)


def test_a_page_with_zero_users_contains_the_total_number_of_users(api: Management, people: list[str]) -> None:
    page = api.get("users", {"include_totals": "true", "per_page": 0}).json
    assert (page["total"], page["users"]) == (7, [])


def test_a_page_of_connections_omits_its_length_and_cannot_have_the_size_zero(api: Management, database_connection: Connection) -> None:
    page = api.get("connections", {"include_totals": "true"}).json
    assert list(page) == ["start", "limit", "total", "connections"]
    assert api.get("connections", {"per_page": 0}).status == 400


def test_checkpoints_read_each_row_of_the_list_once(api: Management, people: list[str]) -> None:
    for take in (1, 2, 7, 100):
        found: list[str] = []
        query: dict[str, Any] = {"take": take, "include_totals": "true", "page": 0}
        while True:
            answer = api.get("users", query).json
            assert set(answer) <= {"users", "next"}
            found += ids(answer["users"])
            if "next" not in answer:
                break
            query["from"] = answer["next"]
        assert found == people


def test_a_checkpoint_keeps_its_position_while_rows_are_inserted_and_deleted(api: Management, tenant: Tenant, people: list[str]) -> None:
    first = api.get("users", {"take": 3}).json
    users = User.objects.of(tenant.pk)
    users.get(user_id=people[0]).delete()
    users.get(user_id=people[2]).delete()
    connection = Connection.objects.of(tenant.pk).get()
    added = make_user(connection=connection).user_id
    rest = api.get("users", {"from": first["next"]}).json
    assert ids(rest["users"]) == [*people[3:], added]


def test_descending_order_is_available_for_pages_and_checkpoints(api: Management, people: list[str]) -> None:
    assert ids(api.get("users", {"sort": "created_at:-1", "per_page": 2}).json) == people[::-1][:2]
    first = api.get("users", {"sort": "created_at:-1", "take": 4}).json
    rest = api.get("users", {"sort": "created_at:-1", "from": first["next"]}).json
    assert ids(first["users"] + rest["users"]) == people[::-1]


def test_a_checkpoint_of_another_order_or_list_is_refused(api: Management, tenant: Tenant, people: list[str]) -> None:
    make_connection(tenant_id=tenant.pk)
    of_users = api.get("users", {"take": 1}).json["next"]
    of_connections = api.get("connections", {"take": 1}).json["next"]
    for path, checkpoint, sort in (
        ("users", of_connections, ""),
        ("connections", of_users, ""),
        ("users", of_users, "created_at:-1"),
        ("users", of_users, "email:1"),
        ("users", "nonsense", ""),
        ("users", "WzEsIDIsIDAsIDFd", ""),
        ("users", "\u00e9", ""),
        ("users", "x" * 10_000, ""),
    ):
        answer = api.get(path, {"from": checkpoint, "sort": sort})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string"), checkpoint[:20]


def test_users_can_be_sorted_by_indexed_fields(api: Management, database_connection: Connection) -> None:
    for name in ("b", "C", "a"):
        make_user(connection=database_connection, email=f"{name}@example.test", identifier=name)
    emails = [user["email"] for user in api.get("users", {"sort": "email:1"}).json]
    assert emails == ["a@example.test", "b@example.test", "C@example.test"]
    assert ids(api.get("users", {"sort": "user_id:-1"}).json) == ids(api.get("users", {"sort": "user_id:1"}).json)[::-1]
    for sort in ("email", "email:2", "nosuch:1", ":1"):
        assert api.get("users", {"sort": sort}).json["errorCode"] == "invalid_query_string"


def test_users_can_be_filtered_by_the_name_of_their_connection(api: Management, tenant: Tenant, people: list[str]) -> None:
    mail = make_connection(tenant_id=tenant.pk, name="mail", strategy="email")
    other = make_user(connection=mail)
    page = api.get("users", {"connection": "mail", "include_totals": "true"}).json
    assert (page["total"], ids(page["users"])) == (1, [other.user_id])
    assert api.get("users", {"connection": "nowhere"}).json == []


def test_an_invalid_parameter_is_refused(api: Management) -> None:
    for query in ODD_QUERIES:
        answer = api.get("users", query)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string"), query
        assert answer.json["message"].startswith("Query validation error: '")


def test_unknown_and_empty_parameters_are_ignored(api: Management, people: list[str]) -> None:
    assert ids(api.get("users", {"colour": "red", "take": "", "from": "", "page": "", "sort": "", "fields": ""}).json) == people


def test_a_page_beyond_the_configured_offset_is_refused(api: Management, people: list[str], settings: LazySettings) -> None:
    settings.OFFSET_LIMIT = 6
    assert api.get("users", {"page": 1, "per_page": 3}).status == 200
    refused = api.get("users", {"page": 2, "per_page": 3})
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_paging")
    assert len(api.get("users", {"take": 100}).json["users"]) == 7
