"""Searches of users over the management interface: the parameters `q` and `sort` in each of the three formats of a list."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from foundation.timestamps import wire_time
from identity.models import Connection, Tenant, User
from identity.search import reading
from identity.services import tenants
from tests.factories.identity import make_connection, make_user
from tests.management import Answer, Management

PEOPLE = (
    ("Joan", "corp.com", "gold"),
    ("Ada", "corp.com", "free"),
    ("John", "other.org", "gold"),
    ("Bob", "sub.corp.com", "free"),
    ("Joe", "corp.com", "gold"),
)


@pytest.fixture
def api(tenant: Tenant) -> Management:
    return Management(tenant)


@pytest.fixture
def staff(database_connection: Connection) -> list[User]:
    """Create five users and return them, the oldest user first."""
    return _people_of(database_connection)


def _people_of(people: Connection) -> list[User]:
    return [
        make_user(
            connection=people,
            identifier=name,
            email=f"{name.lower()}@{domain}",
            name=f"{name} Doe",
            app_metadata={"plan": plan, "rank": rank},
        )
        for rank, (name, domain, plan) in enumerate(PEOPLE)
    ]


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    listed = answer.json if isinstance(answer.json, list) else answer.json["users"]
    return [user["email"].partition("@")[0] for user in listed]


def found(api: Management, q: str, **further: Any) -> list[str]:
    return names(api.get("users", {"q": q, "search_engine": "v3", **further}))


def test_queries_find_users_by_their_fields(api: Management, staff: list[User]) -> None:
    everybody = ["joan", "ada", "john", "bob", "joe"]
    connection_name = staff[0].connection.name
    for query, wanted in {
        'email:"ADA@corp.com"': ["ada"],
        "email:*@corp.com": ["joan", "ada", "joe"],
        "email.domain:CORP.com": ["joan", "ada", "joe"],
        "name:jo*": ["joan", "john", "joe"],
        "name:jo?n*": ["joan", "john"],
        f"user_id:{staff[1].user_id}": ["ada"],
        "app_metadata.plan:gold AND NOT email.domain:corp.com": ["john"],
        "app_metadata.rank:[1 TO 3}": ["ada", "john"],
        "created_at:[2020-01-01 TO *] AND name:*doe": everybody,
        "last_login:[2020-01-01 TO *]": [],
        f'identities.connection:"{connection_name}" AND NOT blocked:true': everybody,
        "_exists_:phone_number": [],
        "NOT name:jo*": ["ada", "bob"],
        "ada@corp.com": ["ada"],
        "*": everybody,
    }.items():
        assert found(api, query) == wanted, query


def test_a_query_has_the_same_result_for_every_value_of_search_engine(api: Management, staff: list[User]) -> None:
    for engine in ("v1", "v2", "v3"):
        answer = api.get("users", {"q": "name:ada*", "search_engine": engine, "primary_order": "false"})
        assert names(answer) == ["ada"]
    assert api.get("users", {"q": "name:ada*", "search_engine": "v4"}).status == 400


def test_a_search_can_be_limited_to_the_users_of_one_connection(api: Management, tenant: Tenant, staff: list[User]) -> None:
    mail = make_connection(tenant_id=tenant.pk, name="mail", strategy="email")
    make_user(connection=mail, email="joseph@corp.com", name="Joseph")
    assert found(api, "name:jo*", connection="mail") == ["joseph"]


def test_every_page_of_a_search_even_beyond_the_end_has_the_total(api: Management, staff: list[User]) -> None:
    query = {"q": "name:jo*", "include_totals": "true", "per_page": 2}
    first, second, third = (api.get("users", {**query, "page": page}).json for page in range(3))
    assert [names_of(page) for page in (first, second, third)] == [["joan", "john"], ["joe"], []]
    assert [(page["start"], page["limit"], page["length"], page["total"]) for page in (first, second, third)] == [
        (0, 2, 2, 3),
        (2, 2, 1, 3),
        (4, 2, 0, 3),
    ]
    assert api.get("users", {**query, "per_page": 0}).json["total"] == 3


def names_of(page: dict[str, Any]) -> list[str]:
    return [user["email"].partition("@")[0] for user in page["users"]]


def test_a_search_can_be_read_in_the_checkpoint_format(api: Management, staff: list[User]) -> None:
    first = api.get("users", {"q": "name:jo*", "take": 2}).json
    second = api.get("users", {"q": "name:jo*", "take": 2, "from": first["next"]}).json
    assert (names_of(first), names_of(second), "next" in second) == (["joan", "john"], ["joe"], False)


def test_a_total_above_the_limit_is_exact_or_exceeds_the_rows_shown_so_far(
    api: Management, database_connection: Connection, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.USER_SEARCH_COUNT_LIMIT = 3
    for number in range(12):
        make_user(connection=database_connection, email=f"u{number}@corp.com", name="Same")
    query = {"q": "name:same", "include_totals": "true", "per_page": 2}
    for walk in (1, 4, reading.WALK):
        monkeypatch.setattr(reading, "WALK", walk)
        totals = [api.get("users", {**query, "page": page}).json["total"] for page in range(7)]
        assert all(total > 2 * (page + 1) or total == 12 for page, total in enumerate(totals)), (walk, totals)
    settings.USER_SEARCH_COUNT_LIMIT = 0
    assert api.get("users", query).json["total"] == 12


def test_every_search_plan_returns_the_same_pages(api: Management, staff: list[User], monkeypatch: pytest.MonkeyPatch) -> None:
    for walk in (1, 2, 4, reading.WALK):
        monkeypatch.setattr(reading, "WALK", walk)
        for sort, wanted in {
            "created_at:1": ["joan", "john", "joe"],
            "created_at:-1": ["joe", "john", "joan"],
            "email:-1": ["john", "joe", "joan"],
            "name:1": ["joan", "joe", "john"],
        }.items():
            pages = [found(api, "name:jo*", sort=sort, per_page=1, page=page) for page in range(4)]
            assert pages == [[wanted[0]], [wanted[1]], [wanted[2]], []], (walk, sort)


def test_users_can_be_sorted_by_any_field_of_the_first_level(api: Management, staff: list[User]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_user SET last_login = now() WHERE id = %s", [staff[3].pk])
        cursor.execute("UPDATE identity_user SET last_login = now() - interval '1 day' WHERE id = %s", [staff[1].pk])
    for query in ({}, {"q": "created_at:[2020 TO *]"}):
        assert names(api.get("users", {"sort": "last_login:-1", **query}))[:2] == ["bob", "ada"]
        assert names(api.get("users", {"sort": "last_login:1", **query}))[:2] == ["ada", "bob"]
        assert names(api.get("users", {"sort": "name:1", **query})) == ["ada", "bob", "joan", "joe", "john"]
    for field in ("updated_at", "logins_count", "phone_number", "blocked", "last_ip", "picture", "last_password_reset"):
        assert len(api.get("users", {"sort": f"{field}:-1"}).json) == 5
    assert api.get("users", {"sort": "app_metadata.plan:1"}).status == 400


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("name:", "the query ends too early"),
        ("nosuch:x", "the field nosuch is unknown; known fields: user_id, email"),
        ("name:*jo", "needs a part without wildcards that has 3 letters or digits"),
        ("(" * 500 + "name:x" + ")" * 500, "nested deeper than 16 levels"),
        ("name:x OR " * 200 + "name:y", "more than 128 terms"),
        ("user_metadata.a:x*", "does not support wildcards and ranges"),
        ("blocked:maybe", "blocked must be true or false"),
    ],
)
def test_an_invalid_query_is_refused_with_an_explanation(api: Management, query: str, reason: str) -> None:
    answer = api.get("users", {"q": query})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string")
    assert reason in answer.json["message"]
    assert answer.json["message"].endswith("on property q")


def test_hostile_text_is_treated_as_data_and_not_as_sql(api: Management, staff: list[User]) -> None:
    for text in (
        "name:\"'; DROP TABLE identity_user; --\"",
        "app_metadata.plan:\"gold\\\" || $.x == \\\"\"",
        "app_metadata.pl\\\"an:gold",
        "app_metadata.%s:x",
        "name:%%*%s",
        "email.domain:\"%\"",
        "user_id:%*",
        "name:\"\\\\\"",
        "name:" + "a" * 4000,
        "app_metadata." + "a." * 9 + "b:x",
        "app_metadata.n:" + "9" * 19,
    ):  # fmt: skip
        assert found(api, text) == [], text
    assert len(found(api, "*")) == len(PEOPLE)


def test_a_search_finds_only_users_of_its_own_tenant(tenant: Tenant, staff: list[User]) -> None:
    other = tenants.create_tenant(tenant_id=f"{tenant.pk}-b", name="Other", host=f"{tenant.pk}-b.example.test")
    people = make_connection(tenant_id=other.pk, name=staff[0].connection.name)
    twins = {user.pk for user in _people_of(people)}
    for one, count in ((tenant, len(PEOPLE)), (other, len(twins))):
        own = {user.user_id: user.created_at for user in User.objects.of(one.pk)}
        api = Management(one)
        for query in ("name:*doe", "NOT name:x", f"identities.connection:{people.name}", "name:jo* OR name:*doe", "_exists_:email"):
            page = api.get("users", {"q": query, "include_totals": "true"}).json
            assert page["total"] == count, query
            assert {user["created_at"] for user in page["users"]} == {wire_time(moment) for moment in own.values()}, query
        one_user = api.get("users", {"q": "identities.user_id:Joan"}).json
        assert [user["created_at"] for user in one_user] == [wire_time(own["database|Joan"])]


def test_the_time_limit_of_a_search_includes_the_reading_of_linked_identities(
    api: Management, staff: list[User], settings: LazySettings
) -> None:
    settings.USER_SEARCH_TIMEOUT_MS = 50
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": False}) as other:
        other.execute("LOCK TABLE identity_linkedidentity IN ACCESS EXCLUSIVE MODE")
        answer = api.get("users", {"q": "identities.isSocial:false"})
        other.rollback()
    assert answer.status == 503
    assert "The search took too long" in answer.json["message"]


def test_the_identities_for_equal_terms_are_read_once(api: Management, staff: list[User]) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert api.get("users", {"q": " OR ".join(["identities.isSocial:false"] * 30)}).status == 200
    assert sum("LIMIT 1001" in one["sql"] for one in captured.captured_queries) == 1


def test_a_search_over_its_time_limit_gets_503_and_the_next_search_succeeds(
    api: Management, staff: list[User], settings: LazySettings
) -> None:
    settings.USER_SEARCH_TIMEOUT_MS = 50
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": False}) as other:
        # The statement of the search waits for this lock until its time limit cancels the statement.
        other.execute("LOCK TABLE identity_user IN ACCESS EXCLUSIVE MODE")
        for query in ({"q": "name:jo*"}, {"sort": "name:1"}):
            answer = api.get("users", query)
            assert (answer.status, "errorCode" in answer.json) == (503, False), query
            assert "The search took too long" in answer.json["message"]
        other.rollback()
    settings.USER_SEARCH_TIMEOUT_MS = 2000
    assert found(api, "name:ada*") == ["ada"]
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("30s",)
