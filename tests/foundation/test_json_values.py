"""JSON values that may be stored."""

from __future__ import annotations

import pytest

from foundation.json_values import json_problem, text_problem
from identity.models import Connection, Tenant
from identity.services import users
from identity.services.failures import Invalid

BAD = ["a\x00b", "\ud800", 2**63, 1e19, -(2**63) - 1, float("inf"), float("nan"), {"k\x00": 1}, {"a": [{"b": "\udfff"}]}, {1: 2}, 3 + 4j]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_a_value_that_cannot_be_read_back_unchanged_is_reported(value: object) -> None:
    assert json_problem(value)


@pytest.mark.parametrize("value", ["ü€😀", 2**63 - 1, 1.5, True, None, {"a": {"b": [1, "x"]}}, []], ids=repr)
def test_ordinary_json_values_are_not_reported(value: object) -> None:
    assert json_problem(value) is None


def test_the_nesting_depth_is_limited() -> None:
    value: object = 1
    for _ in range(65):
        value = [value]
    assert json_problem(value) == "Nested deeper than 64 levels."


def test_the_service_refuses_values_that_cannot_be_read_back_and_writes_nothing(tenant: Tenant, database_connection: Connection) -> None:
    for profile in ({"name": "a\x00b"}, {"name": "\ud800"}, {"user_metadata": {"n": 2**70}}, {"app_metadata": {"t": "\x00"}}):
        with pytest.raises(Invalid):
            users.create_user(tenant_id=tenant.pk, connection=database_connection, **profile)
    assert not database_connection.users.exists()
    assert text_problem("fine") is None
