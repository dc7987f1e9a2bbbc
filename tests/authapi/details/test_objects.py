"""Authorization details in requests, and the check that they do not exceed the granted details."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authapi.details.objects import DetailsRefused, judge, read_details
from authapi.details.types import DetailType
from authapi.details.within import all_within, is_within

API = "https://bank.example.test"
TYPES = {"payment": DetailType("payment"), "open": DetailType("open", schema={"required": ["x"]})}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"type": "payment"}
    for _ in range(depth - 1):
        value = {"type": "payment", "a": value}
    return value


@pytest.mark.parametrize(
    "sent",
    [
        "{",
        "null",
        "{}",
        "[]",
        "[1]",
        '[{"type": 1}]',
        '[{"type": ""}]',
        "[{}]",
        json.dumps([{"type": "x" * 256}]),
        json.dumps([nested(9)]),
        "[" * 5000,
        json.dumps([{"type": "payment"}] * 21),
        json.dumps([{"type": "payment", "a": "x" * 8200}]),
        json.dumps([{"type": "payment", "a": "\x00"}]),
        json.dumps([{"type": "payment", "actions": "read"}]),
        json.dumps([{"type": "payment", "locations": [1]}]),
        json.dumps([{"type": "payment", "identifier": 1}]),
        {"type": "payment"},
        7,
    ],
    ids=str,
)
def test_only_a_bounded_list_of_typed_objects_is_accepted(sent: Any) -> None:
    with pytest.raises(DetailsRefused):
        read_details(sent)


def test_a_list_is_read_the_same_as_its_json_text() -> None:
    sent = [nested(8), {"type": "payment", "actions": ["read"], "identifier": "1"}]
    assert read_details(json.dumps(sent)) == read_details(sent) == tuple(sent)


@pytest.mark.parametrize(
    ("detail", "problem"),
    [
        ({"type": "unknown"}, "Object 1 of the authorization_details: The API has no such type for this client."),
        ({"type": "open"}, "Object 1 of the authorization_details: 'x' is a required property"),
        ({"type": "payment", "locations": ["https://other.example.test/"]}, "locations"),
        ({"type": "payment", "locations": [API + ".evil.test/"]}, "locations"),
        ({"type": "payment", "locations": [API + "/a/../../other"]}, "locations"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_object(detail: dict[str, Any], problem: str) -> None:
    with pytest.raises(DetailsRefused, match="Object 1") as refused:
        judge((detail,), TYPES, audience=API)
    assert problem in str(refused.value)


def test_a_location_is_the_api_or_an_address_below_it() -> None:
    judge(({"type": "payment", "locations": [API, API + "/payments"]},), TYPES, audience=API)


GRANTED = {"type": "payment", "actions": ["initiate", "cancel"], "amount": {"value": 1, "currency": "EUR"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"actions": ["initiate"]}, True),
        ({"actions": ["cancel", "initiate"]}, True),
        ({"actions": ["initiate", "list"]}, False),
        # An object without actions could allow every action.
        ({"actions": None}, False),
        ({"actions": []}, False),
        ({"amount": {"currency": "EUR", "value": 1}}, True),
        ({"amount": {"value": 2, "currency": "EUR"}}, False),
        # A smaller number can be a wider permission, for example if the number is a minimum.
        ({"amount": {"value": 0.5, "currency": "EUR"}}, False),
        ({"amount": {"value": True, "currency": "EUR"}}, False),
        ({"amount": {"value": 1}}, False),
        ({"payee": "thief"}, False),
        ({"type": "transfer"}, False),
    ],
)
def test_a_request_may_shorten_lists_only_in_members_that_rfc_9396_defines(changes: dict[str, Any], expected: bool) -> None:
    asked = {name: value for name, value in {**GRANTED, **changes}.items() if value is not None}
    assert is_within(asked, GRANTED) is expected


def test_one_refused_object_refuses_the_whole_list() -> None:
    assert all_within([GRANTED, {"type": "open"}], [{"type": "open"}, GRANTED])
    assert not all_within([GRANTED, {"type": "open"}], [GRANTED])
