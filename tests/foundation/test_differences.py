"""The differences between two documents, and the actor of a stored event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from events.log.stored_envelope import envelope_of, who_of
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
def test_the_actor_of_an_event_is_the_client_or_else_the_ip_address(context: Any, who: str) -> None:
    assert who_of(envelope_of(json.dumps({"data": {"context": context}}).encode())) == who


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"5", b"[" * 100_000])
def test_bytes_that_are_not_an_envelope_have_no_actor(body: bytes) -> None:
    assert envelope_of(body) == {}
