"""Schemas of detail types: what an administrator may register, and the cost of checking an object."""

from __future__ import annotations

import time
from typing import Any

import pytest

from authapi.details.schema import MAX_BYTES, SchemaOdd, problem_of, usable_schema
from authapi.details.types import problems_of

PAYMENT: dict[str, Any] = {
    "type": "object",
    "properties": {"type": {}, "amount": {"$ref": "#/$defs/amount"}, "payee": {"type": "string", "pattern": "^(a+)+$"}},
    "required": ["amount"],
    "additionalProperties": False,
    "$defs": {"amount": {"type": "number", "exclusiveMinimum": 0}},
}
TWICE = {f"s{number}": {"allOf": [{"$ref": f"#/$defs/s{number + 1}"}] * 2} for number in range(9)}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("text", "must be a JSON object"),
        ({"$ref": "https://evil.test/schema"}, "must name a schema of $defs"),
        ({"$ref": "file:///etc/passwd"}, "must name a schema of $defs"),
        ({"$ref": "#"}, "must name a schema of $defs"),
        ({"$ref": "#/$defs/absent"}, "must name a schema of $defs"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads back to itself"),
        ({"$ref": "#/$defs/s0", "$defs": {**TWICE, "s9": {}}}, "more than 1000 schemas"),
        ({"$id": "https://evil.test/"}, "keyword $id"),
        ({"properties": {"a": {"$dynamicRef": "#a"}}}, "keyword $dynamicRef"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema must be"),
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, "properties.a.pattern: the pattern cannot run in linear time"),
        ({"properties": {"a": {"pattern": "(\\w{1000}){1000}"}}}, "properties.a.pattern"),
        ({"properties": {f"p{number}": {"pattern": "a"} for number in range(21)}}, "more than 20 patterns"),
        ({"properties": {"a": {"type": "money"}}}, "properties.a.type"),
        ({"properties": {"a": "string"}}, "Each nested schema"),
        ({"description": "x" * MAX_BYTES}, "longer than"),
    ],
)
def test_an_invalid_or_costly_schema_is_refused_with_a_reason(schema: Any, problem: str) -> None:
    with pytest.raises(SchemaOdd) as odd:
        usable_schema(schema)
    assert problem in str(odd.value)


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "$id": {"const": {"$ref": "kept"}}}}
    assert usable_schema(schema)["properties"] == schema["properties"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"type": "payment", "amount": 1.5}, ""),
        ({"type": "payment", "amount": 0}, "amount: the value is less than or equal to the minimum of 0"),
        ({"type": "payment"}, "'amount' is a required property"),
        ({"type": "payment", "amount": "secret"}, "amount: the value is not of type 'number'"),
        ({"type": "payment", "amount": 1, "hidden": 2}, "Additional properties are not allowed ('hidden' was unexpected)"),
    ],
)
def test_a_refusal_names_the_position_and_not_the_value(value: dict[str, Any], problem: str) -> None:
    assert problem_of(value, PAYMENT) == problem


def test_the_cost_of_a_pattern_depends_only_on_the_length_of_the_text() -> None:
    # A backtracking engine would take longer than the whole test suite.
    began = time.process_time()
    assert "payee" in problem_of({"type": "payment", "amount": 1, "payee": "a" * 5000 + "!"}, PAYMENT)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"type": "with space"}, "without spaces"),
        ({"type": "<b>"}, "angle brackets"),
        ({"sentence": "Pay {amount"}, "Unmatched brace"),
        ({"sentence": "Pay {}"}, "not a member"),
        ({"sentence": "Pay {amount..x}"}, "not a member"),
        ({"sentence": "Pay {sum}"}, "{sum}, which the schema does not have"),
        ({"schema": {"type": 3}}, "Not a usable JSON Schema"),
    ],
)
def test_the_refusal_of_a_type_contains_its_position(changes: dict[str, Any], problem: str) -> None:
    entry = {"type": "payment", "schema": PAYMENT, "sentence": "Pay {amount}", **changes}
    (told,) = problems_of([entry])
    assert told.startswith(f"Type 1 ({entry['type']}): ")
    assert problem in told


def test_a_type_may_be_listed_only_once() -> None:
    assert problems_of([{"type": "payment"}, {"type": "payment"}]) == ["Type 2 (payment): Duplicate type."]
