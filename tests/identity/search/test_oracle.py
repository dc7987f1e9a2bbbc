"""Random queries. For each tenant, PostgreSQL must find the same users as a simple evaluation of the query on the documents."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation.api.paging import BY_CREATION
from identity.documents import user_document
from identity.models import Connection, Tenant, User
from identity.search import reading
from identity.search.compiling import compiled_search
from identity.search.reading import SearchReading
from identity.search.rows import UserConditions
from identity.services import tenants, users
from tests.depth import sized
from tests.factories.identity import make_connection, make_user

Document = dict[str, Any]
Test = Callable[[Document], bool]

METADATA: list[Document] = [
    {},
    {"plan": "gold", "seats": 5, "tags": ["a", "B"]},
    {"plan": "Gold", "seats": "5", "tags": []},
    {"plan": None, "seats": 5.5, "deep": {"key": "x"}},
    {"plan": ["gold", 7], "seats": True, "deep": [{"key": "x"}, {"key": 'q"\\$'}]},
    {"plan": "true", "seats": -3, "deep": {"key": {"inner": None}}, "a.b": "dot"},
]
PROFILES: list[Document] = [
    {"email": "Ada@corp.com", "name": "Ada Äther", "blocked": True},
    {"email": "joan@corp.com", "name": "Joan 100%_x", "nickname": "jo*an", "email_verified": True},
    {"email": "john@sub.corp.com", "given_name": "John", "family_name": 'O"Neil\\s', "blocked": False},
    {"email": None, "name": "joe", "phone_number": "+4912345"},
    {"email": "x@y.org", "name": "JOAN", "picture": "https://example.test/a.png"},
    {"email": "adaline@corp.com", "name": "line\nbreak"},
]


class Leaf(NamedTuple):
    """The text of a query, and a function that reports whether a document matches this query."""

    text: str
    test: Test


@pytest.fixture
def two_tenants(tenant: Tenant, database_connection: Connection) -> list[str]:
    """Create two tenants with equal users, and return their ids. In each tenant, one user has a linked identity."""
    other = tenants.create_tenant(tenant_id=f"{tenant.pk[:50]}-other", name="Other", host=f"{tenant.pk[:50]}-other.example.test")
    for one in (tenant.pk, other.pk):
        people = database_connection if one == tenant.pk else make_connection(tenant_id=one, name=database_connection.name)
        guests = make_connection(tenant_id=one, name="guests", strategy="oidc")
        for number, profile in enumerate(PROFILES * 2):
            values = {key: value for key, value in profile.items() if value is not None}
            if number >= len(PROFILES) and "email" in values:
                values["email"] = f"second.{values['email']}"
            if number >= len(PROFILES):
                values.pop("phone_number", None)
            make_user(connection=people, identifier=f"u{number}", **{"email": None, **values}, app_metadata=_kept(number))
        make_user(connection=guests, identifier="g1", email="guest@corp.com", name="Guest")
        make_user(connection=guests, identifier="g2", email="linked@corp.com", name="Linked")
        users.link_users(tenant_id=one, primary_id=f"{people.strategy}|u0", secondary_id="oidc|guests|g2")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE identity_user SET logins_count = id %% 4, last_login = CASE WHEN id %% 3 = 0 THEN timestamptz '2026-01-31 23:30+00' END"
            " WHERE tenant_id = ANY(%s)",
            [[tenant.pk, other.pk]],
        )
    return [tenant.pk, other.pk]


def _kept(number: int) -> Document:
    return {key: value for key, value in METADATA[number % len(METADATA)].items() if value is not None}


def folded(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


def text_leaves() -> st.SearchStrategy[Leaf]:
    fields = st.sampled_from(["email", "name", "nickname", "given_name", "family_name"])
    values = st.sampled_from(["ada@corp.com", "JOAN", "joan 100%_x", "jo*an", 'o"neil\\s', "ada äther", "line\nbreak", "guest", ""])
    patterns = st.sampled_from(["jo*", "j*n", "*corp.com", "*@corp.com", "a*h?r", "????", "adA*", "joan?100*", "*neil*", "gues?"])
    return st.one_of(
        st.builds(lambda f, v: Leaf(f'{f}:"{_escaped(v)}"', lambda d: bool(v) and folded(d.get(f)) == v.lower()), fields, values),
        st.builds(lambda f, p: Leaf(f"{f}:{p}", lambda d: bool(d.get(f)) and fnmatchcase(folded(d[f]), p.lower())), fields, patterns)
        .filter(lambda leaf: not leaf.text.endswith("????")),
        st.builds(lambda f: Leaf(f"_exists_:{f}", lambda d: bool(d.get(f))), fields),
        st.builds(
            lambda v: Leaf(f"email.domain:{v}", lambda d: folded(d.get("email")).rpartition("@")[2] == v.lower()),
            st.sampled_from(["corp.com", "CORP.com", "sub.corp.com", "com"]),
        ),
    )  # fmt: skip


def value_leaves() -> st.SearchStrategy[Leaf]:
    switches = st.sampled_from(["blocked", "email_verified", "phone_verified"])
    return st.one_of(
        st.builds(lambda f, v: Leaf(f"{f}:{str(v).lower()}", lambda d: d.get(f) is v), switches, st.booleans()),
        st.builds(lambda f: Leaf(f"_exists_:{f}", lambda d: f in d), st.one_of(switches, st.sampled_from(["last_login", "logins_count"]))),
        st.builds(lambda n: Leaf(f"logins_count:{n}", lambda d: d.get("logins_count") == n), st.integers(0, 4)),
        st.builds(lambda n: Leaf(f"logins_count:[* TO {n}}}", lambda d: 0 < d.get("logins_count", 0) < n), st.integers(0, 4)),
        st.builds(lambda n: Leaf(f"user_id:database|u{n}", lambda d: d["user_id"] == f"database|u{n}"), st.integers(0, 13)),
        st.sampled_from(
            [
                Leaf("last_login:2026-01-31", lambda d: "last_login" in d),
                Leaf("last_login:[2026-02-01 TO *]", lambda d: False),
                Leaf("last_login:{* TO 2026-01-31]", lambda d: "last_login" in d),
                Leaf("last_login:{2026-01-31 TO *]", lambda d: False),
                Leaf("phone_number:+4912345", lambda d: d.get("phone_number") == "+4912345"),
                Leaf("picture:https\\://example*", lambda d: "picture" in d),
                Leaf("identities.connection:guests", lambda d: any(one["connection"] == "guests" for one in d["identities"])),
                Leaf("identities.provider:oidc", lambda d: any(one["provider"] == "oidc" for one in d["identities"])),
                Leaf('identities.user_id:"guests|g2"', lambda d: any(one["user_id"] == "guests|g2" for one in d["identities"])),
                Leaf("identities.user_id:u3", lambda d: any(one["user_id"] == "u3" for one in d["identities"])),
                Leaf("identities.isSocial:false", lambda d: any(not one["isSocial"] for one in d["identities"])),
                Leaf("identities.connection:nowhere", lambda d: False),
            ]
        ),
    )


def _leaves_at(value: Any, path: list[str]) -> list[Any]:
    """Return the values of a JSON document at a path: each element of an array, each leaf of an object, and no value for null."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves_at(item, path)]
    if path:
        return _leaves_at(value[path[0]], path[1:]) if isinstance(value, dict) and path[0] in value else []
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves_at(item, [])]
    return [] if value is None else [value]


def _scalars(document: Document, path: list[str]) -> list[Any]:
    found: Any = [document.get("app_metadata", {})]
    for key in path:
        flat = [item for one in found for item in (one if isinstance(one, list) else [one])]
        found = [one[key] for one in flat if isinstance(one, dict) and key in one]
    return [item for one in found for item in (one if isinstance(one, list) else [one]) if not isinstance(item, dict)]


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int | float):
        return text.lstrip("-").replace(".", "", 1).isdigit() and float(text) == value
    return bool(value == text)


def json_leaves() -> st.SearchStrategy[Leaf]:
    paths = st.sampled_from([["plan"], ["seats"], ["tags"], ["deep", "key"], ["a.b"], ["nowhere"]])
    values = st.sampled_from(["gold", "5", "5.5", "5.0", "true", "-3", "7", "a", "B", "x", 'q"\\$', "dot", "b"])

    def name(path: list[str]) -> str:
        return "app_metadata." + ".".join(key.replace(".", "\\.") for key in path)

    return st.one_of(
        st.builds(lambda p, v: Leaf(f'{name(p)}:"{_escaped(v)}"', lambda d: any(_same(one, v) for one in _scalars(d, p))), paths, values),
        st.builds(lambda p: Leaf(f"_exists_:{name(p)}", lambda d: bool(_leaves_at(d.get("app_metadata", {}), p))), paths),
        st.builds(
            lambda p, n: Leaf(
                f"{name(p)}:[{n} TO 6}}",
                lambda d: any(isinstance(one, int | float) and not isinstance(one, bool) and n <= one < 6 for one in _scalars(d, p)),
            ),
            paths,
            st.integers(-4, 6),
        ),
        st.builds(
            lambda p: Leaf(f"{name(p)}:g*d", lambda d: any(isinstance(one, str) and fnmatchcase(one, "g*d") for one in _scalars(d, p))),
            paths,
        ),
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _level(operators: list[str], modifiers: list[str], parts: list[Leaf]) -> Leaf:
    """Join the terms of one pair of parentheses to a query, and add a function that evaluates them as the classic Lucene parser does."""
    text = ""
    required: list[Test] = []
    optional: list[Test] = []
    prohibited: list[Test] = []
    for place, part in enumerate(parts):
        before = operators[place - 1] if place else ""
        after = operators[place] if place + 1 < len(parts) else ""
        text += f" {before} {modifiers[place]}{part.text}" if place else f"{modifiers[place]}{part.text}"
        kind = (
            prohibited
            if modifiers[place] in ("-", "NOT ")
            else required
            if "AND" in (before, after) or modifiers[place] == "+"
            else optional
        )
        kind.append(part.test)

    def test(document: Document) -> bool:
        fits = all(one(document) for one in required) and not any(one(document) for one in prohibited)
        return fits and (bool(required) or not optional or any(one(document) for one in optional))

    return Leaf(f"({text})", test)


def queries() -> st.SearchStrategy[Leaf]:
    leaves = st.one_of(text_leaves(), value_leaves(), json_leaves())
    levels = st.integers(1, 4).flatmap
    return st.recursive(
        leaves,
        lambda inner: levels(
            lambda size: st.builds(
                _level,
                st.lists(st.sampled_from(["AND", "OR", ""]), min_size=size, max_size=size),
                st.lists(st.sampled_from(["", "", "", "+", "-", "NOT "]), min_size=size, max_size=size),
                st.lists(inner, min_size=size, max_size=size),
            )
        ),
        max_leaves=8,
    )


def test_random_queries_find_the_same_users_as_the_simple_evaluation(two_tenants: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    documents = {one: {row.pk: user_document(row) for row in User.objects.of(one).select_related("connection")} for one in two_tenants}

    @settings(max_examples=sized(50, deep=300), deadline=None, suppress_health_check=list(HealthCheck))
    @given(query=queries(), walk=st.sampled_from([1, 4, reading.WALK]))
    def holds(query: Leaf, walk: int) -> None:
        # `walk` limits the rows that a page reads. A low limit tests the query plan for searches that need more rows.
        monkeypatch.setattr(reading, "WALK", walk)
        compiled = compiled_search(query.text)
        for one in two_tenants:
            wanted = [pk for pk, document in sorted(documents[one].items()) if query.test(document)]
            rows = User.objects.of(one)
            read = SearchReading(UserConditions(one).of(compiled))
            assert [row.pk for row in read.page(rows, BY_CREATION, 0, 50)] == wanted, query.text
            assert read.total(rows, BY_CREATION) == len(wanted), query.text
            paged = SearchReading(UserConditions(one).of(compiled))
            assert [row.pk for row in paged.page(rows, BY_CREATION, 1, 2)] == wanted[1:3], query.text
            assert paged.total(rows, BY_CREATION) == len(wanted), query.text

    holds()
