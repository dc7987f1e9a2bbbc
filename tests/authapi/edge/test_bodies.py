"""Request bodies: forms and JSON are parsed to the same members. Values that mean "not set", such as `undefined`, are dropped."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authapi.edge.bodies import MalformedBody, parse_body

FORM = "application/x-www-form-urlencoded"
VALUES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1).filter(
    lambda text: text not in {"None", "undefined"}
)


@given(st.dictionaries(VALUES, VALUES, max_size=8))
def test_a_form_and_json_are_parsed_to_the_same_members(members: dict[str, str]) -> None:
    assert parse_body(FORM, urlencode(members).encode()) == members
    assert parse_body("application/json; charset=utf-8", json.dumps(members).encode()) == members


@pytest.mark.parametrize("unset", [None, "", "None", "undefined"])
def test_every_spelling_of_an_unset_value_is_read_as_absent(unset: Any) -> None:
    assert parse_body("application/json", json.dumps({"scope": unset, "a": "1"}).encode()) == {"a": "1"}


@pytest.mark.parametrize("unset", ["", "None", "undefined"])
def test_unset_fields_of_a_form_are_absent(unset: str) -> None:
    assert parse_body(FORM, urlencode({"scope": unset, "a": "1"}).encode()) == {"a": "1"}


def test_members_of_json_that_are_not_texts_are_kept() -> None:
    body = {"authn_response": {"id": "x"}, "flag": False, "number": 0}
    assert parse_body("application/json", json.dumps(body).encode()) == body


@pytest.mark.parametrize("kind", [FORM, "application/json"])
def test_an_empty_body_has_no_members(kind: str) -> None:
    assert parse_body(kind, b"") == {}


@pytest.mark.parametrize(
    ("kind", "body", "sentence"),
    [
        ("text/plain", b"", "content type"),
        ("application/json", b"nope", "not valid JSON"),
        ("application/json", b'{"a": NaN}', "not valid JSON"),
        ("application/json", b"\xff", "not valid JSON"),
        ("application/json", b'{"a": "\\ud800"}', "not valid JSON"),
        ("application/json", b"3", "must be a JSON object"),
        (FORM, b"a=%ff", "not a valid form"),
        (FORM, b"\xff", "not a valid form"),
        (FORM, b"&".join(b"a%d=1" % number for number in range(300)), "not a valid form"),
        (FORM, b"a=1&a=1", "The parameter a is repeated"),
        (FORM, b"a=%00", "NUL"),
    ],
)
def test_an_unreadable_body_is_refused_with_an_explanation(kind: str, body: bytes, sentence: str) -> None:
    with pytest.raises(MalformedBody, match=sentence):
        parse_body(kind, body)
