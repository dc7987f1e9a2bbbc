from __future__ import annotations

from typing import Any

import pytest

from identity.options.connection_options import database_options, options_problem, takes_username


def test_sent_values_have_precedence_over_the_defaults() -> None:
    options = database_options({"passwordPolicy": "low", "import_mode": True})
    assert options["passwordPolicy"] == "low"
    assert options["import_mode"] is True
    assert options["mfa"]["active"] is True


@pytest.mark.parametrize(("strategy", "name"), [("oidc", "client_id"), ("okta", "client_id"), ("pingfederate", "pingFederateBaseUrl")])
def test_required_options_of_a_strategy_cannot_be_omitted(strategy: str, name: str) -> None:
    assert options_problem(strategy, {"issuer": "x"}, is_database=False) == f"Missing required property {name}."
    assert options_problem(strategy, {name: "value"}, is_database=False) is None
    assert options_problem("samlp", {}, is_database=False) is None


@pytest.mark.parametrize(
    "options",
    [
        {"attributes": []},
        {"attributes": {}},
        {"attributes": {"email": {}}, "validation": {}},
        {"passwordPolicy": ["good"]},
        {"password_complexity_options": "strict"},
        {"password_complexity_options": {"min_length": 0}},
        {"password_complexity_options": {"min_length": True}},
        {"password_complexity_options": {"min_length": 100_000}},
    ],
)
def test_contradictory_options_of_a_database_connection_are_refused(options: dict[str, Any]) -> None:
    assert options_problem("database", options, is_database=True) is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"requires_username": True}, True),
        ({"attributes": {"username": {}}}, True),
        ({"attributes": {"username": {"identifier": {"active": False}}}}, False),
        ({"attributes": {"email": {}}}, False),
        ({"attributes": "odd"}, False),
    ],
)
def test_user_names_are_accepted_if_the_options_allow_them(options: dict[str, Any], expected: bool) -> None:
    assert takes_username(options) is expected
