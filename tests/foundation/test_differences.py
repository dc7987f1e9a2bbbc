"""The differences between two documents, the actor of a stored event, and the entities in the event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from events.log.stored_envelope import envelope_of, roots_in, who_of
from foundation.differences import differences


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", "1", "2")]),
        ({}, {"a": None}, [("a", None, "null")]),
        ({"a": None}, {}, [("a", "null", None)]),
        ({"a": {"b": {"c": 1}, "d": 2}}, {"a": {"b": {"c": 3}, "d": 2}}, [("a.b.c", "1", "3")]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [("a", "[1, 2]", "[2, 1]")]),
        ({"a": True, "b": 1}, {"a": 1, "b": 1.0}, [("a", "true", "1"), ("b", "1", "1.0")]),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, []),
        ({"a": {}}, {"a": "ü"}, [("a", "{}", '"ü"')]),
        ({"gone": 1, "b": 1}, {"new": 1, "b": 2}, [("new", None, "1"), ("b", "1", "2"), ("gone", "1", None)]),
        (None, {"a": 1}, [("", "null", '{"a": 1}')]),
    ],
)
def test_each_differing_field_is_named_once(before: Any, after: Any, found: list[Any]) -> None:
    assert [tuple(one) for one in differences(before, after)] == found


@pytest.mark.parametrize(
    ("context", "who"),
    [
        ({"client": {"id": "abc", "name": "crm"}, "request": {"ip": "10.0.0.1"}}, "crm"),
        ({"client": {"id": "abc", "name": ""}}, "abc"),
        ({"request": {"ip": "10.0.0.1"}}, "a page, from 10.0.0.1"),
        ({"client": "abc", "request": []}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_actor_of_an_event_is_the_client_or_otherwise_the_ip_address(context: Any, who: str) -> None:
    assert who_of(envelope_of(json.dumps({"data": {"context": context}}).encode())) == who


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"5", b"[" * 100_000])
def test_bytes_that_are_not_an_envelope_are_read_as_an_empty_envelope(body: bytes) -> None:
    assert envelope_of(body) == {}


@pytest.mark.parametrize(
    ("event_type", "data", "roots"),
    [
        ("user.updated", {"object": {"user_id": "db|1", "email": "a@b.test"}}, ["user:db|1"]),
        ("user.updated", {"object": {"user_id": "db|1"}, "context": {"connection": {"id": "con_1"}}}, ["user:db|1", "connection:con_1"]),
        ("group.created", {"object": {"id": "grp_1", "organization_id": "org_1"}}, ["group:grp_1", "organization:org_1"]),
        (
            "group.member.added",
            {"object": {"group": {"id": "grp_1"}, "member": {"member_type": "user", "id": "db|1"}}},
            ["group:grp_1", "user:db|1"],
        ),
        (
            "group.member.added",
            {"object": {"group": {"id": "grp_1", "connection_id": "con_1"}, "member": {"member_type": "connection", "id": "grp_2"}}},
            ["group:grp_1", "connection:con_1", "group:grp_2"],
        ),
        (
            "organization.member.role.assigned",
            {"object": {"organization": {"id": "org_1"}, "user": {"user_id": "db|1"}, "role": {"id": "rol_1"}}},
            ["organization:org_1", "user:db|1", "role:rol_1"],
        ),
        ("user.updated", {"object": {"user_id": 5, "id": None, "user": [], "group": "x"}, "context": {"connection": "x"}}, []),
        ("", None, []),
    ],
)
def test_the_entities_in_an_event_are_found(event_type: str, data: Any, roots: list[str]) -> None:
    assert list(roots_in({"type": event_type, "data": data})) == roots
